"""Tool calls and reasoning with the official openai library. The shard is simulated and outputs the text between <<<
and >>>, in the format that --tool-format names."""

import json

import openai
import pytest

TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
    for name in ("get_weather", "get_time")]
CALLS = ("<think>\nLook it up.\n</think>\n\nI look.\n"
         '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris \\"é\\""}}\n</tool_call>\n'
         '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>\n')
ARGUMENTS = [{"city": 'Paris "é"'}, {"city": "Rome"}]


@pytest.fixture
def client(tools_server):
    with openai.OpenAI(base_url=f"{tools_server.url}/v1", api_key="unused", max_retries=0) as made:
        yield made


def ask(client, text, **more):
    return client.chat.completions.create(
        model="tgi", messages=[{"role": "user", "content": f"Say <<<{text}>>> please."}],
        temperature=0, tools=TOOLS, **more)


def test_a_plain_answer_has_reasoning_text_and_calls(client):
    answer = ask(client, CALLS)
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I look."
    assert choice.message.reasoning_content == "Look it up."
    assert [call.function.name for call in choice.message.tool_calls] == ["get_weather", "get_time"]
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == ARGUMENTS
    assert answer.usage.completion_tokens_details.reasoning_tokens > 0


def test_the_librarys_stream_helper_gathers_the_same_answer(client):
    with client.chat.completions.stream(
            model="tgi", messages=[{"role": "user", "content": f"Say <<<{CALLS}>>> please."}],
            temperature=0, tools=TOOLS) as stream:
        for _ in stream:
            pass
        choice = stream.get_final_completion().choices[0]
    plain = ask(client, CALLS).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == plain.message.content
    assert [call.function.arguments for call in choice.message.tool_calls] == [
        call.function.arguments for call in plain.message.tool_calls]


def test_an_agent_loop_sends_results_back(client):
    first = ask(client, CALLS).choices[0].message
    answer = client.chat.completions.create(
        model="tgi", tools=TOOLS, temperature=0, messages=[
            {"role": "user", "content": "Weather?"}, first,
            *({"role": "tool", "tool_call_id": call.id, "content": "12"} for call in first.tool_calls),
            {"role": "user", "content": "Say <<<It is 12.>>> please."}])
    assert answer.choices[0].message.content == "It is 12."
    assert answer.choices[0].finish_reason == "stop"


def test_an_unknown_tool_of_the_choice_is_the_librarys_bad_request(client):
    with pytest.raises(openai.BadRequestError, match="tool_choice"):
        ask(client, "Hi.", tool_choice={"type": "function", "function": {"name": "other"}})
