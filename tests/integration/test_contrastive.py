"""Contrastive search through HTTP: mixed with other requests, against HF transformers' tokens; cached prefixes,
preemption and several ranks change nothing; without the option the error names it."""

import json
from pathlib import Path

import pytest
from penstock_testing import Server, at_once

GOLDENS = Path(__file__).resolve().parents[1] / "data" / "goldens"
TEXTS = ("story", "girl", "long", "unicode")  # plain texts; the other cases are chats
OPTIONS = ("--dtype", "float32", "--contrastive-search")


def cases(name):
    golden = json.loads((GOLDENS / f"{name}.json").read_text())
    return {case["name"]: case for case in golden["cases"]}


def requests():
    """(text, parameters, golden ids or None) of greedy, contrastive and seeded sampled requests."""
    texts, contrastive = cases("demo"), cases("contrastive")
    found = []
    for name in TEXTS:
        case = texts[name]
        found.append((case["text"], {"max_new_tokens": 64}, case["greedy"]["ids"]))
        found.append((case["text"], {"max_new_tokens": 40, "do_sample": True, "seed": 7}, None))
        for run in contrastive[name]["runs"]:
            parameters = {key: run[key] for key in ("penalty_alpha", "top_k", "repetition_penalty")}
            found.append((case["text"], {"max_new_tokens": 48, **parameters}, run["ids"]))
    return found


def ids(answer):
    return [token["id"] for token in answer["details"]["tokens"]]


def together(server, asked):
    def ask(i):
        text, parameters, _ = asked[i]
        return ids(server.generate(text, **parameters))

    return at_once(len(asked), ask)


@pytest.mark.parametrize("more", [("--backend", "cpu"), ("--backend", "reference"), ("--num-shard", "2"),
                                  ("--kv-layout", "padded")])
def test_a_mixed_batch_gives_the_tokens_of_the_goldens_and_of_solo_runs(more):
    asked = requests()
    with Server(*OPTIONS, *more) as server:
        mixed = together(server, asked)
        for got, (text, parameters, golden) in zip(mixed, asked):
            if golden is not None:
                assert got == golden, (text, parameters)
        sampled = [i for i, (_, parameters, _) in enumerate(asked) if "seed" in parameters]
        for i in sampled:
            assert ids(server.generate(asked[i][0], **asked[i][1])) == mixed[i]
        hits = server.metrics()["penstock_prefix_cache_hit_tokens_total"]
        assert together(server, asked) == mixed  # with cached prefixes now
        assert server.metrics()["penstock_prefix_cache_hit_tokens_total"] > hits


def test_preemption_and_small_chunks_change_no_token():
    asked = [request for request in requests() if request[2] is not None] * 2
    with Server(*OPTIONS, "--kv-cache-memory", "1680KiB", "--admission", "optimistic", "--max-total-tokens", "448",
                "--max-batch-prefill-tokens", "24", "--prefix-caching=false") as server:
        got = together(server, asked)
        for answer, (text, parameters, golden) in zip(got, asked):
            assert answer == golden, (text, parameters)
        assert server.metrics()["penstock_preemptions_total"] > 0


def test_alpha_zero_and_one_candidate_are_greedy():
    text = cases("demo")["story"]["text"]
    with Server(*OPTIONS) as server:
        greedy = ids(server.generate(text, max_new_tokens=30))
        assert ids(server.generate(text, max_new_tokens=30, penalty_alpha=0.0)) == greedy
        assert ids(server.generate(text, max_new_tokens=30, penalty_alpha=0.6, top_k=1)) == greedy
        assert ids(server.generate(text, max_new_tokens=30, penalty_alpha=0.6)) != greedy


def test_errors_name_field_value_limit_and_option():
    with Server(*OPTIONS, "--max-candidates", "8") as server:
        def message(**parameters):
            return server.generate("Hello", expect=422, **parameters)["error"]

        assert "`top_k` must be >= 1 and <= 8 with `penalty_alpha`. Given: 9" in message(penalty_alpha=0.6, top_k=9)
        assert "`penalty_alpha` must be >= 0.0 and <= 1.0" in message(penalty_alpha=1.5)
        assert "`do_sample`" in message(penalty_alpha=0.6, do_sample=True)
        assert "`penalty_alpha` must be a number" in message(penalty_alpha="x")
    with Server("--dtype", "float32") as server:
        body = server.generate("Hello", expect=422, penalty_alpha=0.6)
        assert "contrastive-search" in body["error"]
