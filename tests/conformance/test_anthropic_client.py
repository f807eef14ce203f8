"""Anthropic's library against /v1/messages. The shard is simulated and outputs the text between <<< and >>> of the
last message. Answers and events are checked against the library's own types."""

import json

import anthropic
import pydantic
import pytest
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent

from penstock_testing import BIN, DEMO_MODEL, Server

TOOLS = [{"name": name, "description": "Looks it up.", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
    for name in ("get_weather", "get_time")]
CALLS = ("<think>\nLook it up.\n</think>\n\nI look.\n"
         '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris \\"é\\""}}\n</tool_call>\n'
         '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>\n')
INPUTS = [{"city": 'Paris "é"'}, {"city": "Rome"}]
THINKING = {"type": "enabled", "budget_tokens": 64}


@pytest.fixture
def client(tools_server):
    with anthropic.Anthropic(base_url=tools_server.url, api_key="unused", max_retries=0) as made:
        yield made


def says(text):
    return [{"role": "user", "content": f"Say <<<{text}>>> please."}]


def ask(client, text, **more):
    return client.messages.create(**{"model": "tgi", "max_tokens": 400, "messages": says(text), **more})


def prompt_tokens(usage):
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


def check_strictly(value, what):
    """The value has only keys that the library's types know."""
    for name in type(value).model_fields:
        inner = getattr(value, name)
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, pydantic.BaseModel):
                check_strictly(item, what)
    assert not value.model_extra, (what, value.model_extra)


def test_an_answer_has_thinking_text_and_calls(client):
    answer = ask(client, CALLS, tools=TOOLS, thinking=THINKING)
    check_strictly(Message.model_validate(answer.model_dump()), "message")
    thinking, text, *calls = answer.content
    assert thinking.thinking == "Look it up." and thinking.signature
    assert text.text == "I look."
    assert [(call.name, call.input) for call in calls] == list(zip(("get_weather", "get_time"), INPUTS))
    assert len({call.id for call in calls}) == 2
    assert answer.stop_reason == "tool_use"
    assert answer.usage.output_tokens_details.thinking_tokens > 0
    assert answer._request_id


def test_without_thinking_the_first_block_is_text(client):
    answer = ask(client, CALLS, tools=TOOLS)
    assert [block.type for block in answer.content] == ["text", "tool_use", "tool_use"]


def test_each_event_has_its_published_type(tools_server):
    body = {"model": "tgi", "max_tokens": 400, "messages": says(CALLS), "tools": TOOLS, "thinking": THINKING,
            "stream": True}
    status, headers, payload = tools_server.request("POST", "/v1/messages", body)
    assert status == 200 and headers["request-id"]
    adapter = pydantic.TypeAdapter(RawMessageStreamEvent)
    seen = []
    for block in payload.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        seen.append(event["type"])
        if event["type"] != "ping":
            check_strictly(adapter.validate_python(event), event["type"])
    assert seen[:2] == ["message_start", "ping"] and seen[-2:] == ["message_delta", "message_stop"]
    assert seen.count("content_block_start") == seen.count("content_block_stop") == 4


def test_the_stream_helper_gathers_the_plain_answer(client):
    with client.messages.stream(model="tgi", max_tokens=400, messages=says(CALLS), tools=TOOLS,
                                thinking=THINKING) as stream:
        kinds = {event.type for event in stream}
        streamed = stream.get_final_message()
    plain = ask(client, CALLS, tools=TOOLS, thinking=THINKING)
    assert {"thinking", "signature", "text", "input_json"} <= kinds

    def shown(answer):
        # Ids and signatures are the answer's own.
        return [block.model_dump(include={"type", "text", "thinking", "name", "input"}) for block in answer.content]
    assert shown(streamed) == shown(plain)
    assert streamed.stop_reason == plain.stop_reason
    assert streamed.usage.output_tokens == plain.usage.output_tokens
    assert prompt_tokens(streamed.usage) == prompt_tokens(plain.usage)
    assert plain.usage.cache_read_input_tokens > 0


def test_an_agent_loop_runs_two_tools(client):
    ran = []

    @anthropic.beta_tool
    def get_weather(city: str) -> str:
        """The weather of a city."""
        ran.append(("get_weather", city))
        return "12 degrees"

    @anthropic.beta_tool
    def get_time(city: str) -> str:
        """The time in a city."""
        ran.append(("get_time", city))
        return "Say <<<It is 12.>>> please."

    runner = client.beta.messages.tool_runner(
        model="tgi", max_tokens=400, messages=says(CALLS), tools=[get_weather, get_time])
    answers = list(runner)
    assert sorted(ran) == [("get_time", "Rome"), ("get_weather", 'Paris "é"')]
    assert [answer.stop_reason for answer in answers] == ["tool_use", "end_turn"]
    assert answers[-1].content[0].text == "It is 12."


def test_thinking_blocks_can_be_sent_back(client):
    first = ask(client, CALLS, tools=TOOLS, thinking=THINKING)
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "12"}]}
               for block in first.content if block.type == "tool_use"]
    answer = ask(client, "", tools=TOOLS, thinking=THINKING, messages=[
        {"role": "user", "content": "Weather?"}, first.to_param(),
        {"role": "user", "content": [*results, {"type": "text", "text": "Say <<<It is 12.>>> please."}]}])
    assert [block.text for block in answer.content] == ["It is 12."]


def test_stop_reasons(client):
    cut = ask(client, "one two three four five six", max_tokens=3)
    assert cut.stop_reason == "max_tokens" and cut.usage.output_tokens == 3
    stopped = ask(client, "one two three", stop_sequences=["two"])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "two")
    assert stopped.content[0].text.strip() == "one"


def test_count_tokens_is_what_a_message_has(client):
    more = {"system": [{"type": "text", "text": "Be brief."}], "tools": TOOLS}
    counted = client.messages.count_tokens(model="tgi", messages=says("Hello"), **more)
    check_strictly(MessageTokensCount.model_validate(counted.model_dump()), "count")
    usage = ask(client, "Hello", **more).usage
    assert counted.input_tokens == prompt_tokens(usage)


def test_cache_control_pins_the_prompt(client, tools_server):
    system = [{"type": "text", "text": "You know much. " * 30, "cache_control": {"type": "ephemeral"}}]
    first = ask(client, "one", system=system).usage
    assert first.cache_creation_input_tokens > 100
    second = ask(client, "two", system=system).usage
    assert second.cache_read_input_tokens >= first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0
    kept = tools_server.json("GET", "/cached_prompts")["cached_prompts"]
    assert any("You know much." in prompt["prompt"] for prompt in kept)


def test_models_are_listed(client):
    assert [model.type for model in client.models.list()] == ["model"]


@pytest.mark.parametrize(("more", "error", "kind"), [
    ({"model": "other"}, anthropic.NotFoundError, "not_found_error"),
    ({"max_tokens": 20000}, anthropic.BadRequestError, "invalid_request_error"),
    ({"messages": []}, anthropic.BadRequestError, "invalid_request_error"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": {
        "type": "base64", "media_type": "image/png", "data": ""}}]}]}, anthropic.BadRequestError,
     "invalid_request_error"),
    ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, anthropic.BadRequestError, "invalid_request_error"),
])
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_the_librarys(client, more, error, kind, stream):
    with pytest.raises(error) as raised:
        ask(client, "Hi", stream=stream, **more)
    assert raised.value.type == kind
    assert raised.value.request_id == raised.value.body["request_id"]


def test_a_failure_in_a_stream_is_raised(client):
    with pytest.raises(anthropic.APIStatusError, match="api_error"):
        for _ in client.messages.create(model="tgi", max_tokens=50, stream=True, messages=[
                {"role": "user", "content": "[[loop]][[fail:3]]"}]):
            pass


def test_wrong_keys_and_a_full_server():
    with Server("--shard-program", BIN / "penstock-simshard", "--api-key", "secret", "--max-concurrent-requests", "1",
                "--tokens", "echo", model=DEMO_MODEL) as server:
        def client(**key):
            return anthropic.Anthropic(base_url=server.url, max_retries=0, **key)
        with pytest.raises(anthropic.AuthenticationError) as raised:
            ask(client(api_key="wrong"), "Hi")
        assert raised.value.request_id
        assert ask(client(auth_token="secret", api_key=None), "Hi").type == "message"
        ours = client(api_key="secret")
        looping = [{"role": "user", "content": "[[loop]][[slow:50]]"}]
        with ours.messages.create(model="tgi", max_tokens=200, messages=looping, stream=True) as stream:
            next(iter(stream))
            with pytest.raises(anthropic.RateLimitError) as raised:
                ask(ours, "Hi")
            assert raised.value.response.headers["retry-after"]
