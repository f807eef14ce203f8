"""Health, which includes the shards; the access log; the command that the ready message shows."""

import json
import os
import signal
import subprocess
import time

import pytest


def plans(server):
    return sum(value for name, value in server.metrics().items()
               if name.startswith("penstock_execute_messages_total{direction=\"plan\""))


def test_health_of_an_idle_server_generates_a_token(simulated):
    server = simulated("--health-probe-idle", "100ms")
    server.generate("prompt", max_new_tokens=2)
    before = plans(server)
    assert server.request("GET", "/health")[0] == 200
    assert plans(server) == before  # it has just proved itself
    deadline = time.monotonic() + 5
    while plans(server) == before and time.monotonic() < deadline:
        assert server.request("GET", "/health")[0] == 200
    assert plans(server) > before
    generated = server.metrics().get("penstock_generated_tokens_total")
    assert generated == 2  # probes do not count as requests


def test_health_reports_an_idle_shard_that_hangs(simulated):
    server = simulated("--health-probe-idle", "1ms", "--step-timeout", "500ms",
                       "--num-replicas", "2")
    victim = next(pid for pid, command in server.children().items() if "--group=0" in command)
    os.kill(victim, signal.SIGSTOP)
    began = time.monotonic()
    status, headers, _ = server.request("GET", "/health")
    assert status == 503 and time.monotonic() - began < 4
    assert "retry-after" in {name.lower() for name in headers}
    server.wait_metric('penstock_group_up{group="0"}', lambda value: value == 1)
    assert server.request("GET", "/health")[0] == 200


def test_the_access_log_has_fields_in_json(simulated):
    server = simulated("--log-format", "json")
    server.request("POST", "/generate", {"inputs": "x", "parameters": {"max_new_tokens": 2}},
                   headers={"x-request-id": "my-request-1"})
    server.stop()
    records = [json.loads(line) for line in server.lines if line.startswith('{"timestamp"')]
    access = [record for record in records if record.get("request_id") == "my-request-1"]
    assert len(access) == 1, records
    assert access[0]["method"] == "POST" and access[0]["path"] == "/generate"
    assert access[0]["route"] == "/generate" and access[0]["status"] == 200
    assert access[0]["bytes"] > 0 and access[0]["duration_ms"] > 0
    assert access[0]["peer"] == "127.0.0.1" and access[0]["component"] == "router"


@pytest.mark.parametrize("options, answer", [
    ([], "generated_text"),
    (["--api-profile", "tgi"], "generated_text"),
    (["--api-profile", "djl"], "generated_text"),
    (["--batching", "static", "--static-grouping", "equal", "--host", "0.0.0.0"], "completion"),
])
def test_the_command_of_the_ready_message_works_as_printed(simulated, tmp_path, options, answer):
    server = simulated(*options)
    command = server.wait_line("try it: +(curl .*)").group(1)
    (tmp_path / ".curlrc").write_text("fail\nsilent\nshow-error\n")
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "CURL_HOME": str(tmp_path)},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, command + "\n" + done.stderr
    assert answer in json.loads(done.stdout)
