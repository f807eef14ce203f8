"""Beam search gives the texts of transformers, and ends when its client leaves."""

import json
import math
import pathlib

import pytest
from penstock_testing import BIN, Server, at_once

GOLDEN = pathlib.Path(__file__).parents[1] / "data" / "goldens" / "beams.json"


@pytest.fixture(scope="module")
def server():
    with Server("--dtype", "float32", "--max-best-of", "8", "--max-concurrent-requests", "64") as running:
        yield running


def search(server, case, **more):
    return server.json("POST", "/v1/completions", {
        "prompt": case["ids"], "use_beam_search": True, "n": case["width"], "max_tokens": case["max_tokens"],
        "length_penalty": case["length_penalty"], "early_stopping": case["early_stopping"], "logprobs": 0, **more})


def score(choice, case):
    logprobs = choice["logprobs"]["token_logprobs"]
    return math.fsum(logprobs) / len(logprobs) ** case["length_penalty"]


def test_texts_and_scores_are_those_of_transformers(server):
    cases = json.loads(GOLDEN.read_text())["cases"]
    assert len(cases) >= 50
    answers = at_once(4, lambda i: [search(server, case) for case in cases[i::4]])
    for i, answer in ((i, answers[i % 4][i // 4]) for i in range(len(cases))):
        case, choices = cases[i], answer["choices"]
        assert [choice["text"] for choice in choices] == case["texts"], case
        # The token that ends a text is not among its log-probabilities, but counts in its score.
        ended = [choice["finish_reason"] == "stop" for choice in choices]
        shown = [length - end for length, end in zip(case["lengths"], ended)]
        tokens = [choice["logprobs"]["tokens"] if choice["logprobs"] else [] for choice in choices]
        assert [len(each) for each in tokens] == shown
        for choice, end, expected in zip(choices, ended, case["scores"]):
            assert end or score(choice, case) == pytest.approx(expected, abs=1e-3, rel=1e-5)
        assert answer["usage"]["completion_tokens"] == sum(case["lengths"])


def test_a_chat_gives_the_best_text_first(server):
    body = {"messages": [{"role": "user", "content": "Tell me a story."}], "use_beam_search": True, "best_of": 4,
            "n": 2, "max_tokens": 8, "logprobs": True}
    answer = server.json("POST", "/v1/chat/completions", body)
    means = [math.fsum(t["logprob"] for t in choice["logprobs"]["content"]) / len(choice["logprobs"]["content"])
             for choice in answer["choices"]]
    assert len(means) == 2 and means == sorted(means, reverse=True)
    record = server.json("GET", "/requests/" + answer["id"])
    assert record["state"] == "finished"
    assert record["prompt_tokens"] == answer["usage"]["prompt_tokens"]


def test_a_search_is_bounded_by_the_context(server):
    status, _, body = server.request("POST", "/v1/completions", {
        "prompt": [5] * 100, "use_beam_search": True, "n": 2, "max_tokens": 100_000})
    assert status == 400
    assert json.loads(body)["error"]["code"] == "context_length_exceeded"


def test_a_search_ends_when_its_client_leaves():
    with Server("--shard-program", BIN / "penstock-simshard", "--step-time", "20ms") as server:
        with pytest.raises(TimeoutError):
            server.request("POST", "/v1/completions", {
                "prompt": "Once", "use_beam_search": True, "n": 2, "max_tokens": 1000}, timeout=0.5)
        server.wait_metric("penstock_requests_cancelled_total", lambda count: count == 1)
        before = server.metrics()["penstock_step_decode_rows_total"]
        # Steps of the search would stand among those of a later request.
        server.request("POST", "/v1/completions", {"prompt": "Once", "max_tokens": 10})
        assert server.metrics()["penstock_step_decode_rows_total"] - before <= 12
