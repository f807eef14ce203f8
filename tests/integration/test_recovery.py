"""Streams survive the loss of their replica group: a pause, and every token of an undisturbed run."""

import concurrent.futures
import json
import os
import signal
import threading

import pytest
from penstock_testing import Server, at_once

TOKENS = 300  # a busy machine must not end a stream before the harm
STORY = "Once upon a time there was a little dog who lived near the sea. "
SAMPLED = {"do_sample": True, "seed": 11, "temperature": 1.1}
# What the state of a request may consist of beside its text.
REQUESTS = [
    (STORY, {}),
    (STORY, SAMPLED),
    ("The cat", {**SAMPLED, "top_p": 0.9, "repetition_penalty": 1.2}),
    ("Tom and his dog", {**SAMPLED, "frequency_penalty": 0.7, "seed": 12}),
    (STORY * 2, {"grammar": {"type": "regex", "value": "([a-z ]{3,9}, ){40}end"}}),
    ("One two three. One two three. One two", {"top_n_tokens": 3}),
    ("Lily saw a", {"typical_p": 0.8, **SAMPLED, "watermark": True}),
    ("A bird", {"stop": ["elephant"]}),
]
CONTRASTIVE = [(STORY, {"penalty_alpha": 0.6, "top_k": 4}),
               ("The cat", {"penalty_alpha": 0.4, "top_k": 6, "repetition_penalty": 1.1})]
OPTIONS = ("--max-total-tokens", "400", "--prefix-caching=true")


class Reader(threading.Thread):
    """Reads one stream to its end."""

    def __init__(self, server, request, started):
        super().__init__(daemon=True)
        self.server, self.request, self.started = server, request, started
        self.events = []
        self.start()

    def run(self):
        inputs, parameters = self.request
        stream = self.server.generate_stream(
            inputs, **{"max_new_tokens": TOKENS, "details": True, **parameters})
        for data in stream:
            self.events.append(json.loads(data))
            if len(self.events) == 4:
                self.started.release()

    def tokens(self):
        assert all("error" not in event for event in self.events), self.events[-1]
        return [(event["token"]["id"], event["token"]["logprob"], event.get("top_tokens"))
                for event in self.events] + [self.events[-1]["generated_text"]]


def read_all(server, harm=lambda: None, requests=REQUESTS):
    """The tokens of all streams. `harm()` once every stream has some, or has ended."""
    started = threading.Semaphore(0)
    readers = [Reader(server, request, started) for request in requests]
    for _ in readers:
        assert started.acquire(timeout=60)
    harm()
    for reader in readers:
        reader.join(120)
        assert not reader.is_alive(), server.output()
    return [reader.tokens() for reader in readers]


def pid_of(server, group, rank=0):
    for pid, command in server.children().items():
        in_group = f"--group={group}" in command or group is None
        if in_group and f"--rank={rank}" in command:
            return pid
    raise AssertionError(f"no rank {rank} of group {group} among {server.children()}")


def lost(server):
    return server.metrics().get('penstock_scheduler_decisions_total{decision="lost"}', 0)


@pytest.fixture(scope="module")
def undisturbed():
    with Server(*OPTIONS) as server:
        return read_all(server)


def test_streams_of_a_killed_shard_continue_on_the_other_group(undisturbed):
    with Server("--num-replicas", "2", *OPTIONS) as server:
        victim = pid_of(server, group=1)
        assert read_all(server, lambda: os.kill(victim, signal.SIGKILL)) == undisturbed
        assert lost(server) > 0
        server.wait_metric('penstock_group_up{group="1"}', lambda value: value == 1, seconds=60)
        assert server.stop() == 0


def test_streams_of_a_stopped_shard_continue_on_the_other_group(undisturbed):
    with Server("--num-replicas", "2", "--rank-timeout", "1s", *OPTIONS) as server:
        victim = pid_of(server, group=0)
        assert read_all(server, lambda: os.kill(victim, signal.SIGSTOP)) == undisturbed
        assert lost(server) > 0


def test_the_only_group_is_started_again_and_continues_its_streams(undisturbed):
    with Server(*OPTIONS) as server:
        victim = pid_of(server, group=None)
        assert read_all(server, lambda: os.kill(victim, signal.SIGKILL)) == undisturbed
        assert lost(server) > 0
        assert pid_of(server, group=None) != victim
        assert server.request("GET", "/health")[0] == 200
        assert server.stop() == 0


def test_streams_of_a_group_of_two_ranks_continue():
    options = ("--num-shard", "2", *OPTIONS)
    with Server(*options) as server:
        expected = read_all(server)
        assert read_all(server, lambda: os.kill(pid_of(server, None, rank=1), signal.SIGKILL)) == expected


def test_drafted_and_contrastive_streams_continue():
    requests = REQUESTS[:4] + CONTRASTIVE
    with Server("--contrastive-search", *OPTIONS) as server:
        expected = read_all(server, requests=requests)
    with Server("--num-replicas", "2", "--contrastive-search", "--speculate", "4", *OPTIONS) as server:
        victim = pid_of(server, group=1)
        assert read_all(server, lambda: os.kill(victim, signal.SIGKILL), requests) == expected
        assert lost(server) > 0


def test_the_best_of_several_sequences_is_the_same():
    def ask(i):
        answer = server.generate(STORY * (1 + i), max_new_tokens=160, best_of=2, do_sample=True)
        return answer["generated_text"], answer["details"]["best_of_sequences"]

    with Server("--num-replicas", "2", "--seed", "5", *OPTIONS) as server:
        expected = at_once(4, ask)
        victim = pid_of(server, group=1)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(at_once, 4, ask)
            server.wait_metric('penstock_group_requests_running{group="1"}', lambda value: value >= 2)
            os.kill(victim, signal.SIGKILL)
            assert asked.result(120) == expected
        assert lost(server) > 0


def test_a_request_that_ends_every_group_is_refused_and_no_other_one(simulated):
    server = simulated("--fail-at-step", "3")  # also after each restart
    body = {"inputs": "x", "parameters": {"max_new_tokens": 50}}
    status, _, answer = server.request("POST", "/generate", body)
    assert status >= 400 and "lost 3 times while it computed this request" in answer.decode()


def error_of_a_killed_group(server):
    stream = server.generate_stream(STORY, max_new_tokens=300)
    for _ in range(3):
        next(stream)
    os.kill(server.pid_of("penstock-simshard"), signal.SIGKILL)
    events = stream.events()
    assert sum("error" in event for event in events) == 1 and "error" in events[-1], events
    return events[-1]["error"]


def test_without_a_group_in_time_a_stream_ends_with_one_error_that_says_so(simulated):
    server = simulated("--step-time", "20ms", "--recovery-timeout", "300ms")
    assert "within 300 ms (--recovery-timeout)" in error_of_a_killed_group(server)
    server.wait_metric('penstock_group_up{group="0"}', lambda value: value == 1, seconds=20)
    assert server.stop() == 0


def test_without_restarts_the_server_ends_with_its_only_group(simulated):
    server = simulated("--step-time", "20ms", "--restart", "never")
    assert "shard-0 was lost" in error_of_a_killed_group(server)
    assert server.wait_exit(30) == 6
