"""Admission and order through HTTP, over simulated shards: preemption is invisible in answers, a blocked
request says what it waits for, hints change the order and nothing else."""

import json
import threading
import time

from penstock_testing import Server, at_once

LONG = 150


def answers(server, count=100):
    """The texts and token ids of `count` simultaneous long requests."""
    def ask(i):
        body = server.generate(f"Tell me story number {i}", max_new_tokens=LONG, seed=i,
                               do_sample=i % 2 == 0)
        return [token["id"] for token in body["details"]["tokens"]]

    return at_once(count, ask)


def explain(server, request_id):
    return server.json("GET", f"/requests/{request_id}")


def wait_record(server, request_id, accept, seconds=20):
    """Each question is an event of its own; the deadline bounds them."""
    deadline = time.monotonic() + seconds
    while True:
        status, _, payload = server.request("GET", f"/requests/{request_id}")
        record = json.loads(payload) if status == 200 else {}
        if status == 200 and accept(record):
            return record
        assert time.monotonic() < deadline, record


def test_a_small_pool_preempts_and_changes_no_answer(simulated):
    ample = simulated("--blocks", "4096", "--max-total-tokens", "1000")
    expected = answers(ample)
    assert all(len(ids) == LONG for ids in expected)
    assert ample.metrics()["penstock_preemptions_total"] == 0

    tight = simulated("--blocks", "64", "--max-total-tokens", "1000", "--admission", "optimistic")
    got = answers(tight)
    assert got == expected
    metrics = tight.metrics()
    preemptions = metrics["penstock_preemptions_total"]
    assert preemptions > 0
    assert not any(name.startswith("penstock_requests_failure_total") for name in metrics)
    admitted = metrics['penstock_requests_admitted_total{admission="optimistic",order="fcfs"}']
    assert admitted == 100 + preemptions
    records = [explain(tight, i) for i in range(1, 101)]
    assert sum(record["preemptions"] for record in records) == preemptions
    assert max(record["preemptions"] for record in records) <= 3
    victim = next(record for record in records if record["preemptions"])
    decision = next(d for d in victim["decisions"] if d["decision"] == "preempted")
    assert decision["short_of"] == "blocks" and decision["needed"] > decision["available"]
    assert victim["state"] == "finished" and victim["generated_tokens"] == LONG


def streams(server, count, tokens):
    """The events of `count` simultaneous streams that forecast one token and request many."""
    results = [None] * count

    def ask(i):
        status, _, payload = server.request("POST", "/generate_stream", {
            "inputs": f"Tell me story number {i}", "parameters": {
                "max_new_tokens": tokens, "seed": i, "do_sample": i % 2 == 0,
                "repetition_penalty": 1.0 + i % 3 / 10, "stop": [" dog"] if i % 4 == 3 else [],
                "details": True}}, {"X-Penstock-Predicted-Tokens": "1"})
        assert status == 200
        return payload.decode().split("\n\n")

    return at_once(count, ask)


def check_wrong_forecasts(server, expected, count, tokens, at_least):
    assert streams(server, count, tokens) == expected
    preemptions = server.metrics()["penstock_preemptions_total"]
    assert preemptions >= at_least
    records = [explain(server, i) for i in range(1, count + 1)]
    assert sum(record["preemptions"] for record in records) == preemptions
    assert max(record["preemptions"] for record in records) <= 3


def test_wrong_forecasts_preempt_often_and_change_no_output(simulated):
    expected = streams(simulated("--max-total-tokens", "1000"), 100, 300)
    tight = simulated("--blocks", "64", "--max-total-tokens", "1000", "--admission", "optimistic")
    check_wrong_forecasts(tight, expected, 100, 300, at_least=100)


def test_preemption_on_a_real_shard_changes_no_bit():
    common = ("--backend", "cpu", "--dtype", "float32", "--max-total-tokens", "400")
    with Server(*common) as server:
        expected = streams(server, 16, 160)
        assert "logprob" in expected[0][0]
    with Server(*common, "--kv-cache-memory", "2MiB", "--admission", "optimistic") as server:
        check_wrong_forecasts(server, expected, 16, 160, at_least=3)


def test_a_blocked_request_reports_budget_deficit_and_blocker(simulated):
    server = simulated("--blocks", "20", "--max-total-tokens", "320", "--step-time", "5ms")
    stream = server.generate_stream("Once upon a time", max_new_tokens=250)
    next(stream)
    done = []

    def ask(name, tokens):
        server.request("POST", "/generate", {
            "inputs": "Hello", "parameters": {"max_new_tokens": tokens}}, {"X-Request-Id": name})
        done.append(name)

    first = threading.Thread(target=ask, args=("large", 200))
    first.start()
    blocked = wait_record(server, "large", lambda r: r.get("waits_for"))
    waits = blocked["waits_for"]
    assert blocked["state"] == "queued"
    assert waits["short_of"] == "blocks" and waits["needed"] > waits["available"], waits
    assert waits["behind"] == 1
    second = threading.Thread(target=ask, args=("small", 2))
    second.start()
    behind = wait_record(server, "small", lambda r: r.get("waits_for"))["waits_for"]
    assert behind["short_of"] == "order" and behind["behind"] == blocked["request"]
    assert server.wait_metric('penstock_queue_reasons{short_of="blocks"}', lambda v: v == 1)
    stream.close()
    first.join(60)
    second.join(60)
    record = explain(server, "large")
    assert record["state"] == "finished" and "waits_for" not in record
    admitted = next(d for d in record["decisions"] if d["decision"] == "admitted")
    assert admitted["step"] > 0


def test_priority_is_first_and_a_bad_hint_is_reported(simulated):
    server = simulated("--order", "priority", "--max-batch-size", "1", "--step-time", "5ms")
    server.wait_said("order priority: no request is overtaken more than 128 times")
    status, _, payload = server.request("POST", "/generate", {"inputs": "a"},
                                        {"X-Penstock-Priority": "high"})
    assert status == 422 and b"x-penstock-priority" in payload and b"high" in payload
    status, _, payload = server.request("POST", "/v1/completions", {"model": "tgi", "prompt": "a"},
                                        {"X-Penstock-Predicted-Tokens": "0"})
    assert status == 400 and b"x-penstock-predicted-tokens" in payload

    stream = server.generate_stream("Once upon a time", max_new_tokens=400)
    next(stream)
    order = []

    def ask(name, priority):
        server.request("POST", "/generate", {
            "inputs": "Hello", "parameters": {"max_new_tokens": 40}},
            {"X-Request-Id": name, "X-Penstock-Priority": priority})
        order.append(name)

    threads = []
    for name, priority in (("low", "-1"), ("high", "7")):
        threads.append(threading.Thread(target=ask, args=(name, priority)))
        threads[-1].start()
        wait_record(server, name, lambda r: r.get("waits_for"))
    stream.close()
    for thread in threads:
        thread.join(60)
    assert order == ["high", "low"]
