"""Prompts that begin alike are computed once: usage, metrics and the step log agree, and no answer changes."""

import json

import pytest
from penstock_testing import BIN, Server, at_once, read_step_log

BLOCK = 16
AT_ONCE = 64


def prefix_of(length, first=10):
    return [first + i * 37 % 1500 for i in range(length)]


def complete(server, prompt, tokens=4, **more):
    return server.json("POST", "/v1/completions", {
        "model": "tgi", "prompt": prompt, "max_tokens": tokens, "ignore_eos": True,
        "temperature": 0, **more})


def cached_of(answer):
    return answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def check_computed_once(server, log, length, tokens=4):
    """64 prompts of one prefix and two tokens of their own. Their texts."""
    prefix = prefix_of(length)
    before = server.metrics()
    steps_before = len(read_step_log(log))
    answers = at_once(AT_ONCE, lambda i: complete(server, prefix + [1600 + i, 100 + i], tokens))
    prompt = length + 2
    for answer in answers:
        assert answer["usage"]["prompt_tokens"] == prompt
        assert answer["usage"]["completion_tokens"] == tokens
        assert cached_of(answer) % BLOCK == 0
    cached = sum(cached_of(answer) for answer in answers)
    own = 2 * AT_ONCE + length % BLOCK * (AT_ONCE - 1)  # after the last shared full block
    computed = prompt * AT_ONCE - cached - own
    assert length <= computed <= 1.02 * length, computed
    steps = read_step_log(log)[steps_before:]
    # The step log counts the same tokens independently, in the plans.
    assert sum(step["prefill_tokens"] for step in steps) == prompt * AT_ONCE - cached
    after = server.metrics()
    name = "penstock_cached_prompt_tokens_total"
    assert after[name] - before[name] == cached
    return [answer["choices"][0]["text"] for answer in answers]


def test_simultaneous_requests_compute_a_prefix_once(simulated, tmp_path):
    log = tmp_path / "steps.jsonl"
    server = simulated("--step-time", "20ms", "--max-sequence-length", "4096", "--step-log", log)
    shared = check_computed_once(server, log, 2048)
    alone = simulated("--prefix-caching=false", "--max-sequence-length", "4096")
    prefix = prefix_of(2048)
    answers = [complete(alone, prefix + [1600 + i, 100 + i]) for i in range(0, AT_ONCE, 9)]
    assert {cached_of(answer) for answer in answers} == {0}
    assert [answer["choices"][0]["text"] for answer in answers] == shared[::9]


def test_two_ranks_compute_a_prefix_once(simulated, tmp_path):
    log = tmp_path / "steps.jsonl"
    server = simulated("--max-sequence-length", "4096", "--step-log", log, ranks=2)
    check_computed_once(server, log, 2048)


@pytest.mark.parametrize("more", [{"n": 4}, {"n": 1, "best_of": 4}, {"n": 4, "temperature": 0}])
@pytest.mark.parametrize("options", [(), ("--max-step-tokens", "32")], ids=["whole", "in chunks"])
def test_choices_compute_the_full_blocks_of_their_prompt_once(more, options):
    """Each choice but the first computes the last 1 to 16 tokens of the prompt: they hold its last row. In chunks, the
    first choice is still being prefilled when the others begin."""
    name = "penstock_step_prefill_tokens_total"
    with Server("--dtype", "float32", "--max-best-of", "4", *options) as server:
        for length in (16, 17, 100):
            before = server.metrics()[name]
            complete(server, prefix_of(length, first=10 + length), **{"temperature": 1, **more})
            tail = length - (length - 1) // BLOCK * BLOCK
            assert server.metrics()[name] - before == length + 3 * tail


def test_the_demo_model_computes_a_prefix_once_and_answers_the_same(tmp_path):
    log = tmp_path / "steps.jsonl"
    with Server("--dtype", "float32", "--step-log", log) as server:
        shared = check_computed_once(server, log, 1920)
    with Server("--dtype", "float32", "--prefix-caching=false") as server:
        prefix = prefix_of(1920)
        for i in (0, 63):
            answer = complete(server, prefix + [1600 + i, 100 + i])
            assert cached_of(answer) == 0
            assert answer["choices"][0]["text"] == shared[i]


@pytest.fixture(scope="module")
def server():
    with Server("--shard-program", BIN / "penstock-simshard") as running:
        yield running


CHAT = {"messages": [{"role": "user", "content": "Tell me a story about a dog and a cat. " * 8}]}
TEXT = {"prompt": "Tell me a story about a bird and a tree. " * 8}


@pytest.mark.parametrize("path, body", [("/v1/chat/completions", CHAT), ("/v1/completions", TEXT)])
def test_openai_usage_counts_cached_tokens_plain_and_streamed(server, path, body):
    body = {"model": "tgi", "max_tokens": 3, **body}
    first = server.json("POST", path, body)
    assert cached_of(first) == 0
    # All full blocks but the one of the last token, which has to be computed.
    expected = (first["usage"]["prompt_tokens"] - 1) // BLOCK * BLOCK
    assert expected >= BLOCK
    assert cached_of(server.json("POST", path, body)) == expected
    events = server.stream(path, {**body, "stream": True,
                                  "stream_options": {"include_usage": True}}).events()
    usages = [e["usage"] for e in events if isinstance(e, dict) and e.get("usage")]
    assert len(usages) == 1
    assert usages[0]["prompt_tokens_details"]["cached_tokens"] == expected
    several = server.json("POST", path, {**body, "n": 2, "temperature": 1})
    assert cached_of(several) == expected  # the prompt is counted once


def test_a_request_reports_its_cached_tokens(server):
    prompt = prefix_of(200, first=77)
    for expected in (0, 192):
        answer = complete(server, prompt)
        assert cached_of(answer) == expected
        record = server.json("GET", f"/requests/{answer['id']}")
        assert record["cached_tokens"] == expected and record["prompt_tokens"] == 200, json.dumps(
            record)


def test_a_record_names_the_volatile_line_of_a_prompt(server):
    def ask(day):
        system = 2 * (f"You are a careful assistant of a library.\nThe weather of today is {day}.\n"
                      "Answer in short words. ")
        return server.json("POST", "/v1/chat/completions", {
            "max_tokens": 1, "messages": [{"role": "system", "content": system}, {"role": "user", "content": "Hi"}]})

    first, second = ask("sunny"), ask("rainy")
    miss = server.json("GET", "/requests/" + second["id"])["prefix_miss"]
    assert miss["why"] == "different"
    assert miss["relative"] == server.json("GET", "/requests/" + first["id"])["request"]
    assert miss["before"].endswith("weather of today is")
    assert "rainy" in miss["here"] and "sunny" in miss["there"]
