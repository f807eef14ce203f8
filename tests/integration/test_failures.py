"""What clients and operators see when a process dies."""

import json
import os
import re
import signal
import time

from penstock_testing import is_alive, wait_gone


def health(server):
    """Status of /health; None when the launcher has stopped the router already."""
    try:
        return server.request("GET", "/health", timeout=5)[0]
    except OSError:
        return None


def test_a_killed_rank_ends_the_stream_with_one_error_and_the_launcher_names_it(simulated):
    server = simulated("--step-time", "50ms", "--restart", "never", ranks=2)
    stream = server.stream("/v1/completions", {
        "model": "tgi", "prompt": "x", "max_tokens": 400, "stream": True})
    for _ in range(3):
        next(stream)
    os.kill(server.pid_of("penstock-simshard", rank=1), signal.SIGKILL)
    rest = list(stream)
    assert "[DONE]" not in rest
    errors = [event for event in rest if "error" in json.loads(event)]
    assert len(errors) == 1 and rest[-1] == errors[0]
    deadline = time.monotonic() + 1
    while (status := health(server)) == 200 and time.monotonic() < deadline:
        pass  # each request waits for an answer of the server, so this loop does not spin
    assert status in (None, 503)
    assert server.wait_exit(30) != 0
    assert re.search(r"shard[- ]1", server.lines[-1] + server.lines[-2]), server.output()
    assert "503" in server.output() or status == 503


def test_a_hung_idle_rank_is_not_reported_as_a_drain(simulated):
    server = simulated("--rank-timeout", "500ms", "--restart", "never", ranks=2)
    os.kill(server.pid_of("penstock-simshard", rank=1), signal.SIGSTOP)
    assert server.wait_exit(30) == 6
    assert "had been stopped" in server.lines[-1]
    assert "waiting for the end" not in "\n".join(server.lines)
    server.wait_said("router: stopping: no request is open|shard-1 was lost")


def test_no_child_survives_a_killed_launcher(simulated):
    server = simulated(ranks=2)
    children = list(server.children())
    assert len(children) == 3
    server.popen.kill()
    assert wait_gone(children, seconds=2) == []
    assert not any(is_alive(pid) for pid in children)


def test_a_failing_step_is_reported_to_the_client(simulated):
    server = simulated("--fail-at-step", "3")
    status, _, body = server.request("POST", "/generate", {
        "inputs": "x", "parameters": {"max_new_tokens": 50}})
    assert status in (424, 500, 503), body
    assert "error" in json.loads(body)


def test_sigterm_finishes_open_requests_and_exits_zero(simulated):
    server = simulated("--step-time", "20ms")
    stream = server.generate_stream("x", max_new_tokens=30)
    next(stream)
    server.popen.send_signal(signal.SIGTERM)
    events = [json.loads(event) for event in stream]
    assert events[-1]["generated_text"] is not None
    assert server.wait_exit(30) == 0
    server.wait_said("stopping: waiting for 1 request to end,")
