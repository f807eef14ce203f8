"""Ollama's library against /api. The shard is simulated and outputs the text between <<< and >>> of the last
message."""

import ollama
import pytest

CALLS = ("<think>\nLook it up.\n</think>\n\nI look.\n"
         '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris \\"é\\""}}\n</tool_call>\n'
         '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>\n')


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
      city: its name
    """
    return f"12 degrees in {city}"


def get_time(city: str) -> str:
    """The time in a city.

    Args:
      city: its name
    """
    return f"Say <<<Noon in {city}.>>> please."


TOOLS = {tool.__name__: tool for tool in (get_weather, get_time)}


@pytest.fixture
def client(tools_server):
    return ollama.Client(host=tools_server.url)


@pytest.fixture
def model(client):
    return client.list().models[0].model


def says(text):
    return [{"role": "user", "content": f"Say <<<{text}>>> please."}]


def test_an_answer_has_thinking_text_and_calls(client, model):
    answer = client.chat(model, says(CALLS), tools=list(TOOLS.values()), think=True)
    assert answer.message.content == "I look."
    assert answer.message.thinking == "Look it up."
    assert [(call.function.name, dict(call.function.arguments)) for call in answer.message.tool_calls] == [
        ("get_weather", {"city": 'Paris "é"'}), ("get_time", {"city": "Rome"})]
    assert answer.done and answer.done_reason == "stop"
    assert answer.prompt_eval_count > 5 and answer.eval_count > 5
    assert answer.total_duration >= answer.eval_duration >= 0


def test_a_stream_gathers_the_same_answer(client, model):
    parts = list(client.chat(model, says(CALLS), tools=list(TOOLS.values()), stream=True))
    assert "".join(part.message.content for part in parts) == "I look."
    assert "".join(part.message.thinking or "" for part in parts) == "Look it up."
    calls = [call for part in parts for call in part.message.tool_calls or []]
    assert [call.function.name for call in calls] == ["get_weather", "get_time"]
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count > 5


def test_an_agent_loop_runs_two_tools(client, model):
    messages = says(CALLS)
    ran = []
    while True:
        answer = client.chat(model, messages, tools=list(TOOLS.values()))
        messages.append(answer.message)
        if not answer.message.tool_calls:
            break
        for call in answer.message.tool_calls:
            ran.append(call.function.name)
            result = TOOLS[call.function.name](**call.function.arguments)
            messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
    assert ran == ["get_weather", "get_time"]
    assert answer.message.content == "Noon in Rome."


def test_generate_plain_streamed_and_raw(client, model):
    prompt = says("One two three.")[0]["content"]
    assert client.generate(model, prompt).response == "One two three."
    assert "".join(part.response for part in client.generate(model, prompt, stream=True)) == "One two three."
    assert client.generate(model, prompt, raw=True).response == "One two three."
    cut = client.generate(model, prompt, options={"num_predict": 2})
    assert cut.done_reason == "length" and cut.eval_count == 2
    assert client.generate(model).done_reason == "load"


def test_the_model_is_listed_and_shown(client, model):
    shown = client.show(model)
    assert {"completion", "tools", "thinking"} == set(shown.capabilities)
    assert shown.modelinfo["llm.context_length"] > 0
    assert client.ps().models[0].model == model
    assert client.chat(f"{model}:latest", says("Hi.")).message.content == "Hi."


@pytest.mark.parametrize(("more", "status", "text"), [
    ({"model": "other"}, 404, "does not exist"),
    ({"options": {"temperature": 9.0}}, 400, "options.temperature"),
    ({"format": {"type": "nothing"}}, 400, "format"),
])
@pytest.mark.parametrize("stream", [False, True])
def test_errors_are_the_librarys(client, model, more, status, text, stream):
    with pytest.raises(ollama.ResponseError, match=text) as raised:
        answer = client.chat(**{"model": model, "messages": says("Hi."), "stream": stream, **more})
        list(answer)
    assert raised.value.status_code == status


def test_a_failure_in_a_stream_is_raised(client, model):
    with pytest.raises(ollama.ResponseError):
        list(client.chat(model, [{"role": "user", "content": "[[loop]][[fail:3]]"}], stream=True))
