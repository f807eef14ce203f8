"""A router that dies is started again on its port, and the shards keep their weights."""

import contextlib
import http.client
import os
import signal
import threading
import time

import pytest
from penstock_testing import Server

OPTIONS = ("--max-total-tokens", "400")
LONG = {"max_new_tokens": 300, "ignore_eos_token": True}


def kill_router(server):
    """Kills it and returns the seconds until it serves again, on the same port."""
    old = server.pid_of("penstock-router")
    began = time.monotonic()
    os.kill(old, signal.SIGKILL)
    server.wait_line("the router serves again on", 60)
    assert server.pid_of("penstock-router") != old
    return time.monotonic() - began


def shards(server):
    return sorted(pid for pid, command in server.children().items() if "penstock-router" not in command[0])


def open_streams(server, count):
    """Streams that have begun; their threads end when the router does."""
    begun = threading.Semaphore(0)

    def read():
        with contextlib.suppress(OSError, http.client.HTTPException):
            for number, _ in enumerate(server.generate_stream("Once upon a time", **LONG)):
                if number == 2:
                    begun.release()

    threads = [threading.Thread(target=read, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=60)
    return threads


def test_a_killed_router_is_back_and_the_shards_keep_their_weights():
    with Server(*OPTIONS, "--num-shard", "2") as server:
        before, processes = server.generate("The cat", max_new_tokens=20), shards(server)
        for _ in range(3):
            threads = open_streams(server, 8)
            seconds = kill_router(server)
            assert seconds < 10, seconds  # the drills measure it on a quiet machine: 2 s
            for thread in threads:
                thread.join(60)
            assert server.generate("The cat", max_new_tokens=20) == before
        assert shards(server) == processes
        assert "\n".join(server.lines).count("read and packed in") == 2, "the weights were read once a rank"
        assert any("checks the step times that an earlier one measured" in line for line in server.lines)
        assert server.stop() == 0


def test_a_router_and_a_shard_that_die_together_both_come_back():
    with Server(*OPTIONS, "--num-replicas", "2") as server:
        before = server.generate("The cat", max_new_tokens=20)
        os.kill(shards(server)[0], signal.SIGKILL)
        kill_router(server)
        assert server.generate("The cat", max_new_tokens=20) == before
        for group in range(2):
            server.wait_metric(f'penstock_group_up{{group="{group}"}}', lambda value: value == 1, seconds=60)
        assert server.stop() == 0


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGABRT])
def test_any_end_of_the_router_is_followed_by_a_start(how):
    with Server(*OPTIONS) as server:
        os.kill(server.pid_of("penstock-router"), how)
        server.wait_said("the router serves again on")
        assert server.generate("The cat", max_new_tokens=4)
        assert server.stop() == 0


def test_without_restarts_the_server_ends_with_its_router():
    with Server(*OPTIONS, "--restart", "never") as server:
        os.kill(server.pid_of("penstock-router"), signal.SIGKILL)
        assert server.wait_exit() == 1
        assert "router (pid " in server.output()


def test_a_stop_while_the_router_is_away_is_in_order():
    with Server(*OPTIONS) as server:
        os.kill(server.pid_of("penstock-router"), signal.SIGKILL)
        server.wait_said("it starts again in")
        assert server.stop() == 0
