"""Where a grammar leaves one text, its tokens are appended without sampling. The answer is the same
however many of them a step appends."""

import json
import re

import pytest

from penstock_testing import Server, at_once

PROMPT = "Once upon a time, there was a little dog."
SCHEMA = {"type": "object",
          "properties": {"first name": {"type": "string", "maxLength": 8},
                         "favourite colour": {"enum": ["turquoise", "magenta", "transparent"]},
                         "the little dog": {"const": "there was a little dog in the big park"},
                         "years": {"type": "integer", "minimum": 1, "maximum": 9}},
          "required": ["first name", "favourite colour", "the little dog", "years"],
          "additionalProperties": False}
REGEX = r"\{\n  \"name\": \"[a-z]{1,6}\",\n  \"house\": \"(brick|straw|sticks)\",\n  \"wolf\": (true|false)\n\}"
REQUESTS = [{"grammar": {"type": "regex", "value": REGEX}},
            {"grammar": {"type": "json", "value": SCHEMA}},
            {"grammar": {"type": "regex", "value": REGEX}, "do_sample": True, "seed": 3, "temperature": 1.2},
            {"grammar": {"type": "json", "value": SCHEMA}, "do_sample": True, "seed": 4,
             "repetition_penalty": 1.2},
            {"grammar": {"type": "regex", "value": REGEX}, "stop": ["house"]},
            {"grammar": {"type": "regex", "value": REGEX}, "max_new_tokens": 23}]


def answer_of(server, i):
    answer = server.generate(PROMPT, **{"max_new_tokens": 200, **REQUESTS[i]})
    details = answer["details"]
    return (answer["generated_text"], details["finish_reason"],
            [(token["id"], token["logprob"]) for token in details["tokens"]])


def answers_of(server):
    return [answer_of(server, i) for i in range(len(REQUESTS))]


@pytest.fixture(scope="module")
def one_at_a_time():
    """A step appends at most one forced token, and then another token."""
    with Server("--forced-tokens", "1") as server:
        return answers_of(server)


@pytest.mark.parametrize("options", [(), ("--num-shard", "2"), ("--kv-layout", "padded"), ("--speculate", "3")],
                         ids=["one", "two ranks", "padded", "drafts"])
def test_answers_are_the_same_and_steps_are_fewer(one_at_a_time, options):
    with Server(*options) as server:
        answers = answers_of(server)
        metrics = server.metrics()
        assert [answer[0] for answer in answers] == [answer[0] for answer in one_at_a_time]
        if "--num-shard" not in options:  # another order of additions
            assert answers == one_at_a_time
        assert at_once(len(REQUESTS), lambda i: answer_of(server, i)) == answers
    forced = sum(logprob is None for answer in answers for _, logprob in answer[2])
    tokens = sum(len(answer[2]) for answer in answers)
    assert metrics["penstock_grammar_forced_tokens_total"] >= forced > tokens / 3
    steps = metrics["penstock_step_duration_seconds_count"]
    print(f"{steps / tokens:.3f} steps a token, {forced} of {tokens} forced")
    assert steps < 0.8 * tokens
    for i in (0, 2):
        assert re.fullmatch(REGEX, answers[i][0])
    for i in (1, 3):
        assert json.loads(answers[i][0])["the little dog"] == "there was a little dog in the big park"


def test_they_can_be_switched_off():
    with Server("--forced-tokens", "0") as server:
        assert all(logprob is not None for answer in answers_of(server) for _, logprob in answer[2])
        assert server.metrics()["penstock_grammar_forced_tokens_total"] == 0


def test_streams_and_openai_answers_say_null():
    body = {"prompt": PROMPT, "max_tokens": 200, "temperature": 0, "logprobs": 2, "guided_regex": REGEX}
    with Server() as server:
        answer = server.json("POST", "/v1/completions", body)["choices"][0]
        chat = server.json("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 200, "temperature": 0,
            "logprobs": True, "top_logprobs": 2,
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}})
        events = list(server.stream("/v1/completions", {**body, "stream": True}, 60))
    assert None in answer["logprobs"]["token_logprobs"]
    assert any(isinstance(one, float) for one in answer["logprobs"]["token_logprobs"])
    assert "".join(answer["logprobs"]["tokens"]) == answer["text"]
    content = chat["choices"][0]["logprobs"]["content"]
    for entry in content:
        assert (entry["logprob"] is None) == (entry["top_logprobs"] == [])
    assert any(entry["logprob"] is None for entry in content)
    json.loads(chat["choices"][0]["message"]["content"])
    assert any("null" in event and "token_logprobs" in event for event in events)
