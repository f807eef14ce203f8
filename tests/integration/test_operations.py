"""Health, which includes the shards; the access log; the command that the ready message shows."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from penstock_testing import BIN, Server


SIMULATED = ("--shard-program", BIN / "penstock-simshard")


def with_open_files(tmp_path, soft, hard):
    """A launcher that starts under these limits of open files."""
    script = tmp_path / "limited"
    script.write_text(f'#!/bin/bash\nulimit -Sn {soft}; ulimit -Hn {hard}\n'
                      f'exec {BIN / "penstock-launcher"} "$@"\n')
    script.chmod(0o755)
    return script


def test_router_and_shards_raise_their_limit_of_open_files(tmp_path):
    with Server(*SIMULATED, launcher=with_open_files(tmp_path, 256, 9000)) as server:
        for pid in server.children():
            limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
            assert re.search(r"^Max open files +(\d+)", limits, re.M).group(1) == "9000", limits
    assert "open files" not in "\n".join(server.lines)


def test_a_hard_limit_of_open_files_below_the_connections_is_warned_of_once(tmp_path):
    with Server(*SIMULATED, launcher=with_open_files(tmp_path, 256, 1000)) as server:
        assert server.generate("x", max_new_tokens=2)["generated_text"]
    [line] = [line for line in server.lines if "open files" in line]
    assert " 1000, " in line and " 4096 connections need 4224" in line and "LimitNOFILE" in line


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
    # The probe continues on the other group once the first one is lost.
    assert server.request("GET", "/health")[0] == 200 and time.monotonic() - began < 4
    assert server.metrics()['penstock_group_losses_total{group="0"}'] == 1
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
