"""A seed fixes the ids of a sampled answer: alone, in a batch, preempted, and behind cached prefixes."""

import pytest
from penstock_testing import Server, at_once

TOKENS = 80
TEXTS = ("Once upon a time, there was a little girl named Lily. She loved to play outside in the park.",
         "The cat", "Tom and his dog went to the lake. The water was cold, and")
SAMPLINGS = ({"temperature": 0.7}, {"temperature": 1.3, "top_k": 40}, {"temperature": 1.0, "top_p": 0.9},
             {"temperature": 1.1, "typical_p": 0.8, "repetition_penalty": 1.2})
ASKED = [(text, {"max_new_tokens": TOKENS, "do_sample": True, "seed": 100 * i + j, **sampling})
         for i, text in enumerate(TEXTS) for j, sampling in enumerate(SAMPLINGS)]
CACHED = "penstock_cached_prompt_tokens_total"
PREEMPTIONS = "penstock_preemptions_total"


def ids_of(server, i):
    """A forecast of one token lets optimistic admission take more than the cache can hold."""
    text, parameters = ASKED[i]
    details = server.json("POST", "/generate", {"inputs": text, "parameters": {"details": True, **parameters}},
                          headers={"X-Penstock-Predicted-Tokens": "1"})["details"]
    assert details["seed"] == parameters["seed"]
    return [token["id"] for token in details["tokens"]]


def alone(server):
    return [ids_of(server, i) for i in range(len(ASKED))]


def together(server):
    return at_once(len(ASKED), lambda i: ids_of(server, i))


@pytest.mark.parametrize("dtype, small_cache", [("float32", "960KiB"), ("bfloat16", "480KiB")])
def test_the_same_seed_gives_the_same_ids_whatever_happens_around_it(dtype, small_cache):
    options = ("--dtype", dtype, "--max-total-tokens", "200")
    with Server(*options, "--prefix-caching=false") as server:
        expected = alone(server)
        assert len({tuple(ids) for ids in expected}) == len(ASKED), "the answers are too alike to compare"
        assert together(server) == expected
        metrics = server.metrics()
        assert metrics[CACHED] == 0 and metrics[PREEMPTIONS] == 0

    with Server(*options, "--prefix-caching=false", "--kv-cache-memory", small_cache,
                "--admission", "optimistic") as server:
        assert together(server) == expected
        assert server.metrics()[PREEMPTIONS] >= 3
        records = [server.json("GET", f"/requests/{i}") for i in range(1, len(ASKED) + 1)]
        assert any(record["preemptions"] and record["generated_tokens"] > 1 for record in records)

    with Server(*options) as server:
        assert together(server) == expected  # the prompts are in the cache now
        before = server.metrics()[CACHED]
        assert alone(server) == expected
        between = server.metrics()[CACHED]
        assert between - before >= 16 * len(SAMPLINGS), "the long prompts were computed again"
        assert together(server) == expected
        assert server.metrics()[CACHED] - between >= 16 * len(SAMPLINGS)


def test_another_seed_gives_other_ids():
    text, parameters = ASKED[0]
    with Server() as server:
        texts = {server.generate(text, **{**parameters, "seed": seed})["generated_text"] for seed in range(8)}
    assert len(texts) == 8
