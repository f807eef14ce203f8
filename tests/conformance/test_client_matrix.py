"""Every client library × every feature, unchanged client code against `--api-profile tgi`.

The shard is simulated and outputs the text between <<< and >>>, so each answer is known, also with grammars and
tools. Other tests cover the output of a model under a grammar.
"""

import contextlib
import json

import pytest

from client_adapters import ADAPTERS, told
from penstock_testing import BIN, Server

END = "<|end|>"
SAID = 'The quick brown fox: "ja", naïve.'
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(scope="module")
def echo():
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo", "--api-profile", "tgi",
                "--max-concurrent-requests", "8") as running:
        yield running


@pytest.fixture(params=ADAPTERS)
def client(request, echo):
    try:
        return ADAPTERS[request.param](echo.url)
    except ImportError as missing:
        pytest.skip(f"{missing.name} is not installed (tests/requirements.txt)")


def those_with(call):
    """Parametrizes over the libraries that have the call; the adapters say which those are."""
    able = [name for name, adapter in ADAPTERS.items() if getattr(adapter, call) is not None]
    return pytest.mark.parametrize("client", able, indirect=True)


def says(text):
    return f"Say <<<{text}>>> please."


@those_with("say")
def test_plain_text(client):
    assert client.say(says(SAID)) == SAID


@those_with("stream")
def test_streamed_text(client):
    parts = client.stream(says(SAID))
    assert "".join(parts).removesuffix(END) == SAID  # TGI streams the token that ends, too
    assert len(parts) > 5


@those_with("details")
@pytest.mark.parametrize("stream", [False, True])
def test_details(client, stream):
    text, ids, reason = client.details(says(SAID), stream)
    assert text == SAID
    assert len(ids) > 5 and all(isinstance(token, int) for token in ids)
    assert reason == "eos_token"


@those_with("chat")
def test_chat(client):
    assert client.chat(says(SAID)) == SAID


@those_with("chat_stream")
def test_streamed_chat(client):
    assert client.chat_stream(says(SAID)) == SAID


@those_with("grammar")
def test_grammar_reaches_the_shard(client):
    shown = json.loads(client.grammar("[[dump]]", SCHEMA))
    assert shown["grammar_type"] in (1, 2)  # as a schema, or as a regular expression made of it
    assert "city" in json.dumps(shown["grammar"])


CALL = '{"function": {"_name": "get_weather", "city": "Paris"}}'


@those_with("tool")
def test_tool_call(client):
    assert client.tool(says(CALL)) == ("get_weather", {"city": "Paris"})


@those_with("tool_stream")
def test_streamed_tool_call(client):
    assert client.tool_stream(says(CALL)) == ("get_weather", {"city": "Paris"})


def test_a_bad_value_raises_the_error_of_the_client_library(client):
    with pytest.raises(client.errors["validation"]) as raised:
        client.bad()
    assert "Input validation error" in told(raised.value)


def any_call(client):
    return getattr(client, "say") or client.chat


def test_a_failed_generation_raises_the_error_of_the_client_library(client):
    with pytest.raises(client.errors["generation"]) as raised:
        any_call(client)("[[fail:1]]")
    assert "Request failed during generation" in told(raised.value)


def test_overload_raises_the_error_of_the_client_library(client, echo):
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            held = echo.generate_stream("[[loop]][[slow:50]]", max_new_tokens=100)
            stack.callback(held.close)
            next(held)
        with pytest.raises(client.errors["overloaded"]) as raised:
            any_call(client)(says(SAID))
        assert "overloaded" in told(raised.value)
    echo.wait_metric("penstock_requests_running", lambda running: running == 0)


KEY = "open-sesame"


def endpoint(**how):
    from langchain_huggingface import HuggingFaceEndpoint
    return HuggingFaceEndpoint(max_new_tokens=60, repetition_penalty=None, typical_p=None, do_sample=False, **how)


def hub_with_key(url, text):
    from huggingface_hub import InferenceClient
    return InferenceClient(url, token=KEY).text_generation(text, max_new_tokens=60, return_full_text=False)


def text_generation_with_key(url, text):
    from text_generation import Client
    client = Client(url, headers={"Authorization": f"Bearer {KEY}"})
    return client.generate(text, max_new_tokens=60).generated_text


def openai_with_key(url, text):
    import openai
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY)
    return client.completions.create(model="tgi", prompt=text, max_tokens=60).choices[0].text


# LangChain sends its token to addresses of Hugging Face and to `model`, never to another `endpoint_url`.
WITH_KEY = {
    "huggingface_hub": hub_with_key, "text-generation": text_generation_with_key, "openai": openai_with_key,
    "langchain model": lambda url, text: endpoint(model=url, huggingfacehub_api_token=KEY).invoke(text),
    "langchain endpoint_url": lambda url, text: endpoint(
        endpoint_url=url, server_kwargs={"headers": {"Authorization": f"Bearer {KEY}"}}).invoke(text)}


@pytest.fixture(scope="module")
def locked():
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo", "--api-profile", "tgi",
                env={"PENSTOCK_API_KEY": KEY}) as running:
        yield running


@pytest.mark.parametrize("call", WITH_KEY)
def test_the_key_as_each_client_sends_it(call, locked):
    try:
        assert WITH_KEY[call](locked.url, says(SAID)) == SAID
    except ImportError as missing:
        pytest.skip(f"{missing.name} is not installed (tests/requirements.txt)")
