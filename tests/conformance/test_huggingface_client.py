"""huggingface_hub.InferenceClient, used as its own documentation shows it for a TGI server.

The client posts to `/`, where TGI puts the prompt before the text unless return_full_text is false.
"""

import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError, ValidationError


@pytest.fixture
def client(server):
    return InferenceClient(server.url)


def reason_of(case):
    return "eos_token" if case["greedy"]["finish"] == "eos" else "length"


def full_text(case):
    return case["text"] + case["greedy"]["text"]


def close(got, expected):
    return got == pytest.approx(expected, abs=1e-3)


def test_plain_text(client, golden):
    case = golden("story")
    assert client.text_generation(case["text"], max_new_tokens=64) == full_text(case)


def test_return_full_text_false_gives_new_text_alone(client, golden):
    case = golden("story")
    text = client.text_generation(case["text"], max_new_tokens=64, return_full_text=False)
    assert text == case["greedy"]["text"]


@pytest.mark.parametrize("name", ["story", "girl", "unicode"])
def test_details_carry_ids_and_logprobs(client, golden, name):
    case = golden(name)
    answer = client.text_generation(case["text"], max_new_tokens=64, details=True)
    assert answer.generated_text == full_text(case)
    assert answer.details.finish_reason == reason_of(case)
    assert answer.details.generated_tokens == len(case["greedy"]["ids"])
    assert [token.id for token in answer.details.tokens] == case["greedy"]["ids"]
    assert close([token.logprob for token in answer.details.tokens], case["greedy"]["logprobs"])
    shown = "".join(token.text for token in answer.details.tokens if not token.special)
    assert shown == case["greedy"]["text"]


def test_decoder_input_details_carry_the_prompt(client, golden):
    case = golden("girl")
    answer = client.text_generation(
        case["text"], max_new_tokens=2, details=True, decoder_input_details=True)
    prefill = answer.details.prefill
    assert [token.id for token in prefill] == case["ids"]
    assert prefill[0].logprob is None
    assert close([token.logprob for token in prefill[1:]], case["prompt_logprobs"][1:])


def test_the_stream_of_texts_joins_to_the_plain_answer(client, golden):
    case = golden("story")
    parts = list(client.text_generation(case["text"], max_new_tokens=64, stream=True))
    assert "".join(parts) == case["greedy"]["text"]
    assert len(parts) > 10


@pytest.mark.parametrize("name", ["story", "unicode"])
def test_the_stream_with_details_ends_with_the_whole_text(client, golden, name):
    case = golden(name)
    events = list(client.text_generation(case["text"], max_new_tokens=64, stream=True, details=True))
    assert [event.token.id for event in events] == case["greedy"]["ids"]
    assert all(event.generated_text is None and event.details is None for event in events[:-1])
    assert events[-1].generated_text == full_text(case)
    assert events[-1].details.finish_reason == reason_of(case)
    assert events[-1].details.generated_tokens == len(case["greedy"]["ids"])
    assert events[-1].details.input_length == len(case["ids"])


def test_repetition_penalty_is_that_of_transformers(client, golden):
    case = golden("story")
    reference = case["repetition_penalty"]
    answer = client.text_generation(case["text"], max_new_tokens=64, details=True,
                                    repetition_penalty=reference["penalty"])
    assert [token.id for token in answer.details.tokens] == reference["ids"]


def test_a_stop_sequence_ends_the_text_and_stays_in_it(client, golden):
    """TGI leaves the stop sequence in place, unlike OpenAI."""
    case = golden("story")
    answer = client.text_generation(case["text"], max_new_tokens=64, stop=["."], details=True)
    assert answer.details.finish_reason == "stop_sequence"
    assert answer.generated_text == full_text(case).split(".")[0] + "."


def test_a_seed_makes_sampling_repeatable(client):
    def sample(seed):
        answer = client.text_generation("Once upon a time", max_new_tokens=40, do_sample=True, temperature=1.1,
                                        top_k=50, top_p=0.9, seed=seed, details=True)
        assert answer.details.seed == seed
        return answer.generated_text

    first = [sample(seed) for seed in range(1, 5)]
    assert first == [sample(seed) for seed in range(1, 5)]
    assert len(set(first)) > 1


def test_chat_completion(client, golden):
    case = golden("greeting")
    answer = client.chat_completion(case["messages"], temperature=0, max_tokens=100)
    assert answer.choices[0].message.content == case["greedy"]["text"]
    parts = client.chat_completion(case["messages"], temperature=0, max_tokens=100, stream=True)
    joined = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert joined == case["greedy"]["text"]


@pytest.mark.parametrize("stream", [False, True])
def test_bad_values_raise_the_error_of_the_client_library(client, stream):
    with pytest.raises((HfHubHTTPError, ValidationError)) as raised:
        list(client.text_generation("Hello", max_new_tokens=0, stream=stream))
    assert "max_new_tokens" in str(raised.value)
