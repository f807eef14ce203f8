"""Times of requests: the sum is the wall time, and a planted delay is the largest part."""

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import socket
import threading
import time
import typing

import pytest

from penstock_testing import BIN

LONG = list(range(5, 305))  # token ids
REPEATED = "the old man " * 150
REQUESTS = 10_000 if os.environ.get("PENSTOCK_LONG_TESTS") else 300
HEAVY_TEMPLATE = ("{% for i in range(500) %}{% for j in range(200) %}{% endfor %}{% endfor %}"
                  "{{ messages[0]['content'] }}")


def completion(server, name, prompt="Once", tokens=1, key=None, **more):
    headers = {"X-Request-Id": name} | ({"Authorization": f"Bearer {key}"} if key else {})
    return server.json("POST", "/v1/completions", {
        "prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0, **more},
        headers=headers)


def ledger_of(server, name, key=None, seconds=10):
    """The ledger once it is closed: the server closes it just after the client has the last byte."""
    headers = {"Authorization": f"Bearer {key}"} if key else None
    deadline = time.monotonic() + seconds
    while True:
        ledger = server.json("GET", f"/requests/{name}", headers=headers)["ledger"]
        if ledger["closed"]:
            return ledger
        assert time.monotonic() < deadline, ledger


def check_sum(ledger):
    total = sum(ledger["totals_ms"].values())
    assert total == pytest.approx(ledger["wall_ms"], rel=0.01, abs=0.001), ledger


@contextlib.contextmanager
def beside(server, *asks):
    """Other requests, of which each has begun to run or to wait in its order."""
    with concurrent.futures.ThreadPoolExecutor(len(asks)) as pool:
        open_ones = []
        for i, ask in enumerate(asks):
            before = busy(server)
            open_ones.append(pool.submit(ask, f"other-{i}"))
            deadline = time.monotonic() + 10
            while busy(server) <= before:
                assert time.monotonic() < deadline
        yield
        for each in open_ones:
            each.result(60)


def busy(server):
    metrics = server.metrics()
    return metrics["penstock_queue_size"] + metrics["penstock_requests_running"]


def alone(**what):
    def run(server):
        completion(server, "victim", **what)
    return run


def behind(others, **what):
    """The victim after others, each given by its own arguments."""
    def run(server):
        asks = [lambda name, other=other: completion(server, name, **other) for other in others]
        with beside(server, *asks):
            completion(server, "victim", **what)
    return run


def pause(seconds):
    """A planted delay."""
    threading.Event().wait(seconds)


def send_slowly(server):
    body = json.dumps({"prompt": "Once", "max_tokens": 1}).encode()
    head = (f"POST /v1/completions HTTP/1.1\r\nhost: x\r\nx-request-id: victim\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n").encode()
    with socket.create_connection((server.host, server.port)) as client:
        client.sendall(head + body[:10])
        pause(0.3)
        client.sendall(body[10:])
        assert client.recv(4096)


def read_slowly(server):
    body = json.dumps({"prompt": "Once", "max_tokens": 500, "n": 120, "best_of": 120, "logprobs": 5,
                       "ignore_eos": True}).encode()
    head = (f"POST /v1/completions HTTP/1.1\r\nhost: x\r\nx-request-id: victim\r\n"
            f"connection: close\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n").encode()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((server.host, server.port))
        client.sendall(head + body)
        server.wait_metric("penstock_generated_tokens_total", lambda tokens: tokens >= 120 * 500, 60)
        pause(3)
        while client.recv(1 << 20):
            pass


def truncate(server):
    server.json("POST", "/generate", {"inputs": REPEATED * 400,
                                      "parameters": {"truncate": 8, "max_new_tokens": 1}},
                headers={"X-Request-Id": "victim"})


def heavy_template(server, name="victim"):
    server.json("POST", "/v1/chat/completions", {
        "messages": [{"role": "user", "content": "Once"}], "max_tokens": 1,
        "chat_template": HEAVY_TEMPLATE}, headers={"X-Request-Id": name})


def after_templates(server):
    """The victim waits while the only text thread renders three templates."""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        others = [pool.submit(heavy_template, server, f"other-{i}") for i in range(3)]
        pause(0.05)
        completion(server, "victim")
        for other in others:
            other.result()


def send_large_body(server):
    completion(server, "victim", metadata={"list": ["a" * 20] * 300_000})


def overtaken(server):
    """Requests of a higher priority arrive later and run first."""
    def ask(name, priority, tokens):
        server.json("POST", "/v1/completions", {
            "prompt": "Once", "max_tokens": tokens, "ignore_eos": True, "temperature": 0},
            headers={"X-Request-Id": name, "X-Penstock-Priority": str(priority)})
    asks = [("first", 0, 30), ("victim", -5, 1), ("later-1", 5, 30), ("later-2", 5, 30), ("later-3", 5, 30)]
    with beside(server, *[lambda _, ask_of=each: ask(*ask_of) for each in asks]):
        pass


def same_prefix(server):
    with beside(server, lambda name: completion(server, name, LONG)):
        completion(server, "victim", LONG)


def beside_prompts(server):
    """Prompts of others are in nearly every step of the victim."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        idle = busy(server)
        victim = pool.submit(completion, server, "victim", tokens=40)
        while busy(server) == idle:
            assert not victim.done()
        i = 0
        while not victim.done():
            completion(server, f"other-{i}", [5 + i % 200, *LONG])
            i += 1
        victim.result()


def grow_both(server):
    """Two answers that do not fit together. The later one has a long prompt, so it is preempted before
    the middle of the other's answer."""
    def ask(name, text):
        server.json("POST", "/v1/chat/completions", {
            "messages": [{"role": "user", "content": text}], "ignore_eos": True},
            headers={"X-Request-Id": name})
    with beside(server, lambda name: ask(name, "Once")):
        ask("victim", REPEATED[:720])
    assert server.json("GET", "/requests/victim")["preemptions"] > 0


@dataclasses.dataclass
class Plant:
    name: str
    options: tuple
    run: typing.Callable
    kind: str


STEP = ("--step-time", "20ms")
TOKEN = ("--token-time", "1ms")
LATER = {"tokens": 30}
PLANTS = [
    Plant("slow steps", STEP, alone(tokens=20), "decode"),
    Plant("one slow step", ("--faults", "slow at=9 factor=400", "--step-time", "1ms"),
          alone(tokens=12), "decode"),
    Plant("steps slow from the tenth on",
          ("--faults", "slow from=10 to=90 factor=30", "--step-time", "1ms"), alone(tokens=30), "decode"),
    Plant("late answers of the shard", ("--faults", "late from=1 to=900 ms=20"), alone(tokens=20),
          "decode"),
    Plant("one late answer", ("--faults", "stall at=6 ms=400"), alone(tokens=12), "decode"),
    Plant("long prompt", TOKEN, alone(prompt=LONG), "prefill"),
    Plant("long prompt in chunks", (*TOKEN, "--max-step-tokens", "32"), alone(prompt=LONG), "prefill"),
    Plant("prompts of others", (*TOKEN, "--step-time", "10ms"), beside_prompts, "shared_decode"),
    Plant("batch full", (*STEP, "--max-batch-size", "1"), behind([LATER]), "queue_batch_size"),
    Plant("batch full, three before it", (*STEP, "--max-batch-size", "1"), behind([LATER] * 3),
          "queue_order"),
    Plant("K/V full", (*STEP, "--blocks", "8"), behind([{"tokens": 90}], tokens=40), "queue_blocks"),
    Plant("tokens of the batch",
          (*STEP, "--max-batch-total-tokens", "120", "--max-total-tokens", "100",
           "--max-input-tokens", "60"), behind([{"tokens": 80}], tokens=45), "queue_total_tokens"),
    Plant("same prefix", (*TOKEN, "--max-step-tokens", "32"), same_prefix, "queue_prefix"),
    Plant("chunks of another", (*TOKEN, "--max-step-tokens", "32"), behind([{"prompt": LONG}]),
          "queue_step_tokens"),
    Plant("preemption", ("--step-time", "5ms", "--blocks", "30", "--admission", "optimistic",
                         "--max-total-tokens", "450", "--max-input-tokens", "300"),
          grow_both, "preempted"),
    Plant("slow upload", (), send_slowly, "upload"),
    Plant("slow client", ("--max-best-of", "120"), read_slowly, "socket"),
    Plant("huge prompt", ("--max-input-tokens", "500"), truncate, "tokenize"),
    Plant("heavy template", ("--trust-request-chat-template",), heavy_template, "template"),
    Plant("templates of others", ("--trust-request-chat-template", "--validation-workers", "1"),
          after_templates, "text_queue"),
    Plant("huge body", (), send_large_body, "parse"),
    Plant("heavy grammar", ("--shard-program", BIN / "penstock-shard"),
          alone(structured_outputs={"regex": "(a|b|cd){0,900}(x|yz){0,900}"}), "grammar"),
    Plant("beam search", STEP, alone(tokens=20, use_beam_search=True, n=2), "search"),
    Plant("one slow chunk", ("--faults", "slow at=3 factor=400", "--step-time", "1ms",
                             "--max-step-tokens", "32"), alone(prompt=LONG), "prefill"),
    Plant("late answer to a prompt", ("--faults", "stall at=1 ms=300"), alone(prompt=LONG), "prefill"),
    Plant("late answers of one rank", ("--num-shard", "2", "--faults", "late from=1 to=900 ms=20 rank=1"),
          alone(tokens=20), "between_steps"),
    Plant("step with a long prompt", TOKEN, behind([{"prompt": LONG}]), "shard_queue"),
    Plant("two slow steps before it", ("--faults", "slow at=2 factor=300", "--step-time", "1ms"),
          behind([{"tokens": 30}]), "queue_not_examined"),
    Plant("K/V full of small requests", (*STEP, "--blocks", "12"),
          behind([{"tokens": 50}] * 3, prompt=LONG[:150]), "queue_blocks"),
    Plant("too few requests to be admitted together", (*STEP, "--prefill", "whole", "--waiting-served-ratio", "3",
                              "--max-waiting-tokens", "1000"), behind([{"tokens": 30}]), "queue_join_size"),
    Plant("higher priorities", (*STEP, "--max-batch-size", "1", "--order", "priority"), overtaken,
          "queue_order"),
]


def test_the_planted_delay_is_named_first(simulated):
    wrong = {}
    for plant in PLANTS:
        server = simulated(*plant.options)
        plant.run(server)
        ledger = ledger_of(server, "victim")
        check_sum(ledger)
        if ledger["most"] != plant.kind:
            wrong[plant.name] = (plant.kind, ledger["most"], ledger["totals_ms"])
        server.stop()
    assert len(wrong) <= 0.05 * len(PLANTS), wrong


def test_sums_are_the_wall_time(simulated):
    server = simulated("--step-time", "1ms", "--max-batch-size", "8", "--blocks", "256",
                       "--max-concurrent-requests", "64")

    def ask(i):
        begin = time.monotonic()
        completion(server, f"r-{i}", [5 + i % 200, *LONG[:(i % 7) * 40]], tokens=1 + i % 9)
        took = 1000 * (time.monotonic() - begin)
        ledger = ledger_of(server, f"r-{i}")
        check_sum(ledger)
        return ledger["wall_ms"], took

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        walls, tooks = zip(*pool.map(ask, range(REQUESTS), timeout=600))
    # The last byte may reach the client before the server's thread reads its clock.
    assert sum(walls) < sum(tooks)
    metrics = server.metrics()
    assert metrics['penstock_request_time_seconds_total{reason="decode"}'] > 0
    assert metrics['penstock_request_time_seconds_total{reason="queue_group"}'] == 0


def test_other_keys_are_not_named(simulated, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("alice:key-a\nbob:key-b\nroot:key-r\n")
    keys.chmod(0o600)
    server = simulated("--step-time", "20ms", "--max-batch-size", "1", "--api-keys-file", keys,
                       "--admin-key-name", "root")
    with beside_of_key(server, "key-a"):
        completion(server, "victim", key="key-b")
    own = ledger_of(server, "victim", "key-b")
    assert own["most"] == "queue_batch_size"
    assert own["behind_other_key"] and "behind" not in own
    assert all("behind" not in span for span in own["spans"])
    admin = ledger_of(server, "victim", "key-r")
    first = server.json("GET", "/requests/first", headers={"Authorization": "Bearer key-a"})
    assert admin["behind"] == first["request"]


@contextlib.contextmanager
def beside_of_key(server, key):
    stream = server.stream("/v1/completions", {"prompt": "Once", "max_tokens": 30, "stream": True,
                                               "ignore_eos": True},
                           headers={"Authorization": f"Bearer {key}", "X-Request-Id": "first"})
    next(stream)
    yield
    list(stream)
