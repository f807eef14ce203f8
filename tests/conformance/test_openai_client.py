"""The official openai library, used as its own documentation shows it."""

import asyncio

import openai
import pytest


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as made:
        yield made


@pytest.fixture
def model(client):
    return client.models.list().data[0].id


def text_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_the_model_list_names_the_served_model(client, model):
    assert model
    assert client.models.list().data[0].object == "model"


@pytest.mark.parametrize("name", ["greeting", "how are you", "abilities", "turns"])
def test_chat_gives_the_greedy_answer_and_ends_by_itself(client, model, golden, name):
    case = golden(name)
    answer = client.chat.completions.create(
        model=model, messages=case["messages"], temperature=0, max_tokens=100)
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == case["greedy"]["text"]
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.prompt_tokens == len(case["ids"])
    assert answer.usage.completion_tokens == len(case["greedy"]["ids"])
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@pytest.mark.parametrize("name", ["greeting", "abilities"])
def test_a_chat_stream_joins_to_the_plain_answer(client, model, golden, name):
    case = golden(name)
    chunks = list(client.chat.completions.create(
        model=model, messages=case["messages"], temperature=0, max_tokens=100, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert text_of(chunks) == case["greedy"]["text"]
    assert len({chunk.id for chunk in chunks}) == 1
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert reasons[-1] == "stop"
    assert not any(reasons[:-1])
    assert all(chunk.usage is None for chunk in chunks)


def test_include_usage_adds_one_last_chunk(client, model, golden):
    case = golden("greeting")
    chunks = list(client.chat.completions.create(
        model=model, messages=case["messages"], temperature=0, max_tokens=100, stream=True,
        stream_options={"include_usage": True}))
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == len(case["ids"])
    assert chunks[-1].usage.completion_tokens == len(case["greedy"]["ids"])
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_max_completion_tokens_ends_with_length(client, model, golden):
    answer = client.chat.completions.create(
        model=model, messages=golden("abilities")["messages"], temperature=0, max_completion_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


@pytest.mark.parametrize("name", ["story", "girl", "long"])
def test_completions_continue_the_prompt(client, model, golden, name):
    case = golden(name)
    made = len(case["greedy"]["ids"])
    answer = client.completions.create(model=model, prompt=case["text"], temperature=0, max_tokens=made)
    assert answer.object == "text_completion"
    assert answer.choices[0].text == case["greedy"]["text"]
    assert answer.choices[0].finish_reason == ("stop" if case["greedy"]["finish"] == "eos" else "length")
    assert answer.usage.prompt_tokens == len(case["ids"])
    assert answer.usage.completion_tokens == made


def test_a_completion_stream_joins_to_the_plain_answer(client, model, golden):
    case = golden("story")
    chunks = list(client.completions.create(
        model=model, prompt=case["text"], temperature=0, max_tokens=64, stream=True))
    assert "".join(chunk.choices[0].text for chunk in chunks) == case["greedy"]["text"]
    assert chunks[-1].choices[0].finish_reason == "length"
    assert len(chunks) > 10


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_string_ends_the_answer_and_is_left_out(client, model, golden, stream):
    case = golden("story")
    stop = case["greedy"]["text"][20:24]  # across a border of words, wherever that falls
    kept = case["greedy"]["text"].split(stop)[0]
    answer = client.completions.create(
        model=model, prompt=case["text"], temperature=0, max_tokens=64, stop=[stop], stream=stream)
    parts = list(answer) if stream else [answer]
    assert "".join(part.choices[0].text for part in parts) == kept
    assert parts[-1].choices[0].finish_reason == "stop"


def test_a_seed_makes_sampling_repeatable(client, model):
    def sample(seed):
        return client.completions.create(model=model, prompt="Once upon a time", temperature=1.0, top_p=0.95,
                                         seed=seed, max_tokens=40).choices[0].text

    first = [sample(seed) for seed in range(4)]
    assert first == [sample(seed) for seed in range(4)]
    assert len(set(first)) > 1


def test_concurrent_streams_do_not_mix(server, model, golden):
    names = ["greeting", "how are you", "abilities", "turns"] * 4

    async def one(client, name):
        stream = await client.chat.completions.create(
            model=model, messages=golden(name)["messages"], temperature=0, max_tokens=100, stream=True)
        return text_of([chunk async for chunk in stream])

    async def everything():
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="unused", max_retries=0) as client:
            return await asyncio.gather(*(one(client, name) for name in names))

    assert asyncio.run(everything()) == [golden(name)["greedy"]["text"] for name in names]


def test_the_server_continues_after_a_closed_stream(client, model, golden):
    stream = client.completions.create(
        model=model, prompt="Chapter one.", temperature=0, max_tokens=500, stream=True)
    next(iter(stream))
    stream.close()
    case = golden("greeting")
    answer = client.chat.completions.create(
        model=model, messages=case["messages"], temperature=0, max_tokens=100)
    assert answer.choices[0].message.content == case["greedy"]["text"]


@pytest.mark.parametrize("bad, field", [
    ({"temperature": -1}, "temperature"), ({"top_p": 7}, "top_p"), ({"max_tokens": -5}, "max_tokens"),
    ({"messages": []}, "messages"), ({"messages": [{"role": "user", "content": "word " * 5000}]}, "")])
def test_bad_values_raise_the_error_of_the_client_library(client, model, bad, field):
    request = {"model": model, "messages": [{"role": "user", "content": "Hello!"}]} | bad
    with pytest.raises((openai.BadRequestError, openai.UnprocessableEntityError)) as raised:
        client.chat.completions.create(**request)
    assert field in raised.value.body["message"]
    assert "\n" not in raised.value.body["message"]


def test_an_unknown_route_is_not_found(client):
    with pytest.raises(openai.NotFoundError):
        client.get("/no-such-route", cast_to=object)
