"""POST /v1/responses with the official openai library, and each object and event against OpenAI's published document.

The shard is simulated and outputs the text between <<< and >>>.
"""

import functools
import json

import jsonschema
import openai
import pydantic
import pytest

from penstock_testing import BIN, Server, shared_data

TEMPLATE = "{% for message in messages %}{{ message | tojson }}\n{% endfor %}assistant: "
TOOLS = [{"type": "function", "name": name, "strict": False, "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
    for name in ("get_weather", "get_time")]
CALLS = ("<think>\nLook it up.\n</think>\n\nI look.\n"
         '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris \\"é\\""}}\n</tool_call>\n'
         '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>\n')
ARGUMENTS = [{"city": 'Paris "é"'}, {"city": "Rome"}]


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    config = tmp_path_factory.mktemp("template") / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": TEMPLATE}))
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo",
                "--tool-format", "hermes", "--tokenizer-config-path", config) as running:
        yield running


@pytest.fixture
def client(echo):
    with openai.OpenAI(base_url=f"{echo.url}/v1", api_key="unused", max_retries=0) as made:
        yield made


def says(text):
    return f"Say <<<{text}>>> please."


def ask(client, text, **more):
    return client.responses.create(model="tgi", input=says(text), temperature=0, **more)


@functools.cache
def published():
    """OpenAI's schemas. Skips the test where they are absent."""
    yaml = pytest.importorskip("yaml")
    document = yaml.load(shared_data("openapi", "openapi.yaml").read_text(),
                         Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return document["components"]


def check(name, instance):
    schema = {"$ref": f"#/components/schemas/{name}", "components": published()}
    jsonschema.Draft202012Validator(schema).validate(instance)


@functools.cache
def schema_of_event(kind):
    for name, schema in published()["schemas"].items():
        if name.endswith("Event") and kind in schema.get("properties", {}).get("type", {}).get("enum", []):
            return name
    raise AssertionError(f"no published event of type {kind}")


def test_an_answer_has_reasoning_text_and_calls(client):
    answer = ask(client, CALLS, tools=TOOLS)
    assert answer.status == "completed"
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call", "function_call"]
    assert answer.output[0].content[0].text == "Look it up."
    assert answer.output_text == "I look."
    assert [json.loads(item.arguments) for item in answer.output[2:]] == ARGUMENTS
    assert answer.usage.output_tokens_details.reasoning_tokens > 0
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens


def test_a_stream_has_the_published_events_and_gathers_the_same_answer(client):
    events = list(ask(client, CALLS, tools=TOOLS, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    plain = ask(client, CALLS, tools=TOOLS)
    end = events[-1].response
    assert end.output_text == plain.output_text
    assert [item.arguments for item in end.output[2:]] == [item.arguments for item in plain.output[2:]]
    assert [event.item for event in events if event.type == "response.output_item.done"] == end.output
    for event in events:
        # The library builds events without a check; this one checks each member.
        type(event).model_validate(event.to_dict(), strict=True)


def test_every_object_and_event_fits_the_published_document(echo):
    body = {"input": says(CALLS), "tools": TOOLS, "temperature": 0, "top_logprobs": 1,
            "include": ["reasoning.encrypted_content"], "instructions": "Be brief."}
    answer = echo.json("POST", "/v1/responses", body)
    check("Response", answer)
    check("ResponseItemList", echo.json("GET", f"/v1/responses/{answer['id']}/input_items"))
    seen = set()
    for limit in (400, 3):
        stream = echo.stream("/v1/responses", {**body, "stream": True, "max_output_tokens": limit})
        for event in stream.events():
            check(schema_of_event(event["type"]), event)
            seen.add(event["type"].removeprefix("response."))
    assert seen == {
        "created", "in_progress", "completed", "incomplete", "output_item.added", "output_item.done",
        "content_part.added", "content_part.done", "output_text.delta", "output_text.done",
        "reasoning_text.delta", "reasoning_text.done", "function_call_arguments.delta",
        "function_call_arguments.done"}


def test_the_librarys_stream_helper_gathers_the_same_answer(client):
    with client.responses.stream(model="tgi", input=says(CALLS), temperature=0, tools=TOOLS) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_response()
    assert "response.output_text.delta" in kinds
    assert answer.output_text == "I look."
    assert [json.loads(item.arguments) for item in answer.output if item.type == "function_call"] == ARGUMENTS


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_loop_with_two_tools(client, stream):
    tools = {"get_weather": lambda city: f"12 degrees in {city}", "get_time": lambda city: f"noon in {city}"}
    conversation = [{"role": "user", "content": says(CALLS)}]
    asked = []
    for _ in range(3):
        answer = client.responses.create(model="tgi", input=conversation, tools=TOOLS, temperature=0,
                                         store=False, stream=stream)
        if stream:
            answer = list(answer)[-1].response
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            break
        conversation += answer.output
        for call in calls:
            asked.append(call.name)
            conversation.append({"type": "function_call_output", "call_id": call.call_id,
                                 "output": tools[call.name](**json.loads(call.arguments))})
        conversation.append({"role": "user", "content": says("It is 12 and noon.")})
    assert asked == ["get_weather", "get_time"]
    assert answer.output_text == "It is 12 and noon."


def test_a_previous_response_is_continued(client):
    first = ask(client, "Hello.")
    second = client.responses.create(model="tgi", input=says("Again."), previous_response_id=first.id)
    assert second.output_text == "Again."
    assert second.previous_response_id == first.id
    texts = [item.content[0].text for item in client.responses.input_items.list(second.id, order="asc")]
    assert texts == [says("Hello."), "Hello.", says("Again.")]
    page = client.responses.input_items.list(second.id, limit=2)
    assert [item.content[0].text for item in page] == texts[::-1], "pages join to the whole list"


def test_a_stored_response_is_read_cancelled_and_deleted(client):
    answer = ask(client, "Hello.")
    assert client.responses.retrieve(answer.id) == answer
    assert client.responses.cancel(answer.id) == answer, "it has ended"
    client.responses.delete(answer.id)
    with pytest.raises(openai.NotFoundError, match="no stored response"):
        client.responses.retrieve(answer.id)
    with pytest.raises(openai.NotFoundError, match="previous_response_id"):
        client.responses.create(model="tgi", input="x", previous_response_id=answer.id)


def test_a_running_response_is_cancelled(client):
    events = client.responses.create(model="tgi", input="[[loop]][[slow:20]]", stream=True,
                                     max_output_tokens=1000)
    running = next(iter(events)).response
    assert client.responses.retrieve(running.id).status == "in_progress"
    assert client.responses.cancel(running.id).status == "cancelled"
    assert list(events)[-1].response.status == "cancelled"


def test_reasoning_that_is_sent_back_reaches_the_template(client, echo):
    answer = ask(client, CALLS, tools=TOOLS, store=False, include=["reasoning.encrypted_content"])
    reasoning = answer.output[0]
    assert reasoning.encrypted_content
    replayed = [{"role": "user", "content": "a"},
                {"type": "reasoning", "summary": [], "encrypted_content": reasoning.encrypted_content},
                {"role": "user", "content": says("Done.")}]
    without = client.responses.create(model="tgi", input=[replayed[0], replayed[2]], store=False)
    replayed = client.responses.create(model="tgi", input=replayed, store=False)
    assert replayed.output_text == "Done."
    assert replayed.usage.input_tokens > without.usage.input_tokens


def test_parse_reads_a_model_of_pydantic(server):
    class Place(pydantic.BaseModel):
        ok: bool

    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
        answer = client.responses.parse(model="tgi", input="Answer.", text_format=Place, temperature=0,
                                        max_output_tokens=64)
    assert isinstance(answer.output_parsed, Place)


def test_log_probabilities_are_those_of_the_text(client):
    answer = ask(client, "Hello there.", include=["message.output_text.logprobs"], top_logprobs=2)
    part = answer.output[0].content[0]
    assert "".join(entry.token for entry in part.logprobs) == part.text == "Hello there."
    assert all(len(entry.top_logprobs) == 2 for entry in part.logprobs)


@pytest.mark.parametrize("more, name", [
    ({"temperature": 5}, "temperature"), ({"background": True}, "background"),
    ({"tool_choice": {"type": "function", "name": "other"}, "tools": TOOLS}, "tool_choice"),
    ({"max_output_tokens": 10**6}, "maximum context length"),
    ({"input": [{"type": "computer_call"}]}, "input")])
def test_bad_requests_are_the_librarys_exception(client, more, name):
    with pytest.raises(openai.BadRequestError, match=name):
        client.responses.create(**{"model": "tgi", "input": "x", **more})


def test_a_failure_is_an_exception_or_the_last_event(client):
    with pytest.raises(openai.InternalServerError):
        client.responses.create(model="tgi", input="[[fail:1]]")
    events = list(client.responses.create(model="tgi", input="[[fail:3]] one two three four", stream=True))
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]
    check("ResponseErrorEvent", events[-2].to_dict())
    check("ResponseFailedEvent", events[-1].to_dict())
    assert events[-1].response.error.code == "server_error"
