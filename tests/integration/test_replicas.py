"""Several replica groups with one router: a group dies, the others continue, it is restarted."""

import json
import os
import re
import signal
import socket
import threading
import time

import pytest

STEP = 0.01


@pytest.fixture
def replicas(simulated):
    """replicas(*options): two groups of two simulated ranks each."""
    def start(*options):
        return simulated("--num-replicas", "2", "--step-time", f"{int(STEP * 1000)}ms", *options,
                         ranks=2)
    return start


def pid_of(server, group, rank):
    for pid, command in server.children().items():
        if f"--group={group}" in command and f"--rank={rank}" in command:
            return pid
    raise AssertionError(f"no rank {rank} of group {group} among {server.children()}")


def up(server, group):
    return server.metrics().get(f'penstock_group_up{{group="{group}"}}')


class Reader(threading.Thread):
    """Reads one stream to its end."""

    def __init__(self, server, tokens):
        super().__init__(daemon=True)
        self.server, self.tokens = server, tokens
        self.events = []
        self.first = threading.Event()
        self.start()

    def run(self):
        self.stream = self.server.generate_stream(f"prompt {self.tokens}",
                                                  max_new_tokens=self.tokens)
        for data in self.stream:
            self.events.append(json.loads(data))
            self.first.set()

    def failed(self):
        return "error" in self.events[-1]

    def longest_gap(self):
        times = self.stream.times
        return max(b - a for a, b in zip(times, times[1:]))


def run_readers_over(server, harm, seconds):
    """Starts four streams, calls `harm()` once all run, and returns the readers when all ended."""
    readers = [Reader(server, 120 + i) for i in range(4)]
    for reader in readers:
        assert reader.first.wait(20)
    harm()
    for reader in readers:
        reader.join(seconds)
        assert not reader.is_alive()
    return readers


def check_one_group_went_on(server, readers):
    """All streams are whole: two continued on the other group."""
    for reader in readers:
        assert not reader.failed(), reader.events[-1]
        assert len(reader.events) == reader.tokens
        assert reader.events[-1]["generated_text"] is not None
    assert server.metrics()['penstock_scheduler_decisions_total{decision="lost"}'] == 2
    # A step takes 10 ms. The end of the other group must not delay it.
    assert sorted(reader.longest_gap() for reader in readers)[1] < 0.25


def test_a_killed_rank_ends_only_its_group_and_the_group_restarts(replicas):
    server = replicas()
    victim = pid_of(server, group=1, rank=1)
    readers = run_readers_over(server, lambda: os.kill(victim, signal.SIGKILL), 30)
    check_one_group_went_on(server, readers)
    server.wait_metric('penstock_group_up{group="1"}', lambda value: value == 1, seconds=20)
    assert server.metrics()['penstock_group_losses_total{group="1"}'] == 1
    assert pid_of(server, group=1, rank=1) != victim
    assert server.request("GET", "/health")[0] == 200
    again = run_readers_over(server, lambda: None, 30)  # both groups work
    assert not any(reader.failed() for reader in again)
    server.stop()
    assert re.search(r"group 1 is down: .*shard[- ](1\.)?1 .*\(rank 1, pid \d+\) was killed by signal 9",
                     "\n".join(server.lines)), server.output()


def seconds_until_a_stopped_rank_is_lost(server, group, rank):
    """Checks also that the other group continues and that the process is replaced."""
    victim = pid_of(server, group=group, rank=rank)
    readers = run_readers_over(server, lambda: os.kill(victim, signal.SIGSTOP), 30)
    check_one_group_went_on(server, readers)
    server.wait_metric(f'penstock_group_up{{group="{group}"}}', lambda value: value == 1, seconds=20)
    assert pid_of(server, group=group, rank=rank) != victim
    return max(reader.longest_gap() for reader in readers)


def test_a_stopped_rank_is_lost_at_its_deadline_killed_and_replaced(replicas):
    server = replicas("--step-timeout", "500ms")
    assert 0.3 < seconds_until_a_stopped_rank_is_lost(server, group=0, rank=0) < 1.5
    assert server.stop() == 0


def test_a_stopped_rank_is_lost_during_a_long_step(replicas):
    server = replicas()  # --step-timeout is a minute
    assert seconds_until_a_stopped_rank_is_lost(server, group=0, rank=1) < 5
    assert server.stop() == 0
    # The router misses its answer and the launcher gets SIGCHLD; either may be first.
    assert re.search(r"group 0 is down: .*shard[- ](0\.)?1 "
                     r"(was lost: during a step, its process did not answer|.* had been stopped for 4000 ms)",
                     "\n".join(server.lines)), server.output()


def test_a_stopped_rank_of_an_idle_group_is_lost_without_a_request(replicas):
    server = replicas()
    victim = pid_of(server, group=1, rank=0)
    began = time.monotonic()
    os.kill(victim, signal.SIGSTOP)
    server.wait_metric('penstock_group_losses_total{group="1"}', lambda value: value == 1,
                       seconds=10)
    assert 3.9 < time.monotonic() - began < 5, server.output()
    server.wait_metric('penstock_group_up{group="1"}', lambda value: value == 1, seconds=20)
    assert pid_of(server, group=1, rank=0) != victim
    assert server.metrics()['penstock_group_losses_total{group="0"}'] == 0
    assert server.stop() == 0
    assert re.search(r"group 1 is down: shard-1\.0 .* had been stopped for 4000 ms",
                     "\n".join(server.lines)), server.output()


def test_a_rank_that_continues_in_time_is_not_lost(replicas):
    server = replicas("--rank-timeout", "1s")
    victim = pid_of(server, group=0, rank=1)
    stream = Reader(server, 30)
    assert stream.first.wait(20)
    os.kill(victim, signal.SIGSTOP)
    stream.join(0.4)
    os.kill(victim, signal.SIGCONT)
    stream.join(20)
    assert not stream.failed()
    unread, _other_end = socket.socketpair()
    unread.settimeout(1)
    with pytest.raises(TimeoutError):  # a second without an event
        unread.recv(1)
    assert up(server, 0) == up(server, 1) == 1
    assert pid_of(server, group=0, rank=1) == victim
    assert server.stop() == 0


def test_a_step_longer_than_the_rank_timeout_loses_no_rank(simulated):
    server = simulated("--step-time", "1200ms", "--rank-timeout", "500ms", ranks=2)
    status, _, body = server.request("POST", "/generate", {
        "inputs": "x", "parameters": {"max_new_tokens": 2}})
    assert status == 200, body
    assert server.stop() == 0


def test_without_a_group_health_fails_and_all_requests_wait(replicas):
    server = replicas("--max-batch-size", "1")  # one runs on each group, the others wait
    readers = [Reader(server, 60 + i) for i in range(2)]
    for reader in readers:
        assert reader.first.wait(20)
    waiting = Reader(server, 40)
    server.wait_metric("penstock_queue_size", lambda value: value == 1)
    for group in (0, 1):
        os.kill(pid_of(server, group, 0), signal.SIGKILL)
    if up(server, 0) == 0 and up(server, 1) == 0:
        status, headers, _ = server.request("GET", "/health")
        assert status == 503 and "retry-after" in {name.lower() for name in headers}
    for reader in (*readers, waiting):
        reader.join(20)
        assert not reader.failed() and reader.events[-1]["generated_text"] is not None
    server.wait_metric('penstock_group_up{group="1"}', lambda value: value == 1, seconds=20)
    assert server.request("GET", "/health")[0] == 200


def test_sigterm_drains_all_groups(replicas):
    server = replicas()
    readers = run_readers_over(server, lambda: server.popen.send_signal(signal.SIGTERM), 30)
    assert not any(reader.failed() for reader in readers)
    assert server.wait_exit(30) == 0
