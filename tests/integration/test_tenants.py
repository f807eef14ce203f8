"""A file of tenants: limits, fair shares, what one tenant may see of another, the audit log."""

import asyncio
import concurrent.futures
import contextlib
import json
import multiprocessing
import random
import signal
import threading
import time

import pytest

BOTH = """
tenants:
  flood: {key: alpha, weight: %d}
  calm: {key: beta, weight: 1}
"""
PROMPT = "Once upon a time there was a small dog who lived in a big house near the sea. " * 6


def bearer(key, **more):
    return {"Authorization": f"Bearer {key}", **more}


@pytest.fixture
def tenants(tmp_path):
    path = tmp_path / "tenants.yaml"

    def write(text):
        path.write_text(text)
        path.chmod(0o600)
        return path

    return write


def ask(server, key, prompt="a", tokens=2, name=None):
    headers = bearer(key, **({"X-Request-Id": name} if name else {}))
    body = {"model": "tgi", "prompt": prompt, "max_tokens": tokens}
    return server.request("POST", "/v1/completions", body, headers)


def test_limits_name_field_value_and_limit_and_follow_a_reload(simulated, tenants):
    path = tenants("tenants:\n  a:\n    key: alpha\n    tokens_per_minute: 10\n")
    server = simulated("--api-keys-file", path)
    assert ask(server, "alpha", "one two three four five six seven eight nine ten")[0] == 200
    status, headers, body = ask(server, "alpha")
    assert status == 429
    assert int(headers["retry-after"]) >= 1
    error = json.loads(body)["error"]
    assert error["type"] == "rate_limit_error"
    assert "at most 10 tokens a minute (`tokens_per_minute`)" in error["message"]
    tenants("tenants:\n  a:\n    key: alpha\n    weight: 0\n")
    server.popen.send_signal(signal.SIGHUP)
    server.wait_said(r"the API keys stay as they were: .*:4: a.weight must be a whole number from 1")
    assert ask(server, "alpha")[0] == 429
    tenants("tenants:\n  a:\n    key: alpha\n    tokens_per_minute: 100000\n")
    server.popen.send_signal(signal.SIGHUP)
    server.wait_said("1 API key read from")
    assert ask(server, "alpha")[0] == 200
    metrics = server.request("GET", "/metrics", headers=bearer("alpha"))[2].decode()
    assert 'penstock_tenant_refused_total{tenant="a"} 2' in metrics


@pytest.mark.parametrize("shared", [False, True])
def test_prefixes_are_apart_unless_the_file_shares_them(simulated, tenants, shared):
    text = BOTH % 1 + ("prefix_cache: shared\n" if shared else "")
    server = simulated("--api-keys-file", tenants(text))
    found = []
    for key, name in [("alpha", "a1"), ("alpha", "a2"), ("beta", "b1")]:
        assert ask(server, key, PROMPT, name=name)[0] == 200
        record = server.json("GET", f"/requests/{name}", headers=bearer(key))
        found.append(record["cached_tokens"])
    assert found[0] == 0
    assert found[1] >= 64
    assert found[2] == (found[1] if shared else 0)
    assert server.request("GET", "/requests/a1", headers=bearer("beta"))[0] == 404
    metrics = server.request("GET", "/metrics", headers=bearer("beta"))[2].decode()
    assert 'tenant="calm"' in metrics
    assert 'tenant="flood"' not in metrics
    assert "penstock_tenant_requests_total{" not in server.request("GET", "/metrics")[2].decode()


def test_the_audit_log_has_a_line_for_each_request(simulated, tenants, tmp_path):
    log = tmp_path / "audit.jsonl"
    server = simulated("--api-keys-file", tenants(BOTH % 1), "--audit-log", log)
    ask(server, "alpha", "SECRET words", tokens=3, name="first")
    ask(server, "wrong", name="second")
    server.stop()
    lines = {line["request_id"]: line for line in map(json.loads, log.read_text().splitlines())}
    assert lines["first"]["tenant"] == "flood"
    assert lines["first"]["generated_tokens"] == 3
    assert lines["first"]["status"] == 200
    assert lines["second"]["status"] == 401
    assert lines["second"]["tenant"] == ""
    assert "SECRET" not in log.read_text()


def ask_plain(server, tokens, **headers):
    return server.request("POST", "/generate", {
        "inputs": "a", "parameters": {"max_new_tokens": tokens}}, headers)


def test_a_deadline_below_the_wait_is_refused_at_once(simulated):
    server = simulated("--step-time", "20ms", "--max-batch-size", "1")
    assert ask_plain(server, 50)[0] == 200  # about 1 s: what the prediction learns from
    others = [threading.Thread(target=ask_plain, args=(server, 50)) for _ in range(6)]
    for other in others:
        other.start()
    server.wait_metric("penstock_queue_size", lambda waiting: waiting >= 4)
    begin = time.monotonic()
    status, headers, body = ask_plain(server, 50, **{"X-Request-Timeout": "500ms"})
    assert status == 429, body
    assert time.monotonic() - begin < 0.5
    assert "the header `x-request-timeout` allows 0.5 s" in body.decode()
    assert int(headers["retry-after"]) >= 1
    assert ask_plain(server, 50, **{"X-Request-Timeout": "1m"})[0] == 200
    for other in others:
        other.join()


# --- Fair shares


class Load:
    """Streams of one tenant at a fixed rate; knows the first token's delay and each token's time."""

    def __init__(self, server, key, rate, seed):
        self.host, self.port, self.key, self.rate = server.host, server.port, key, rate
        self.random = random.Random(seed)
        self.delays, self.work, self.refused, self.offered = [], [], 0, 0

    async def run(self, seconds):
        begin, streams, never = time.monotonic(), [], asyncio.Event()
        while (now := time.monotonic()) < begin + seconds:
            due = int((now - begin) * self.rate)
            while self.offered < due:
                self.offered += 1
                streams.append(asyncio.create_task(self.one()))
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(never.wait(), 0.005)
        for stream in streams:
            stream.cancel()
        await asyncio.gather(*streams, return_exceptions=True)

    async def one(self):
        body = json.dumps({"model": "tgi", "prompt": str(self.random.random()), "stream": True,
                           "max_tokens": self.random.randint(24, 40)}).encode()
        sent = time.monotonic()
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                         b"Content-Type: application/json\r\n"
                         + f"Authorization: Bearer {self.key}\r\n".encode()
                         + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            if b" 200 " not in await reader.readline():
                self.refused += 1
                return
            first = True
            while line := await reader.readline():
                if b'"text"' not in line:
                    continue
                now = time.monotonic()
                if first:
                    self.delays.append((sent, now - sent))
                first = False
                self.work.append(now)
        finally:
            writer.close()

    def tokens(self, begin, end):
        return sum(begin <= at < end for at in self.work)


def run_load(load, seconds):
    asyncio.run(load.run(seconds))
    return load


def run_loads(seconds, *loads):
    """Each in a process of its own, so that a flood does not delay the clock of the other."""
    with concurrent.futures.ProcessPoolExecutor(
            len(loads), mp_context=multiprocessing.get_context("fork")) as pool:
        return list(pool.map(run_load, loads, [seconds] * len(loads)))


SLOTS, STEP, LENGTH = 64, 0.16, 33
CAPACITY = SLOTS / (STEP * LENGTH)  # requests a second


def start_shared(simulated, path):
    return simulated("--api-keys-file", path, "--step-time", "160ms", "--max-batch-size", str(SLOTS),
                     "--max-concurrent-requests", "256")


def test_a_flood_is_refused_and_the_other_tenant_is_not(simulated, tenants):
    share = CAPACITY / 2
    server = start_shared(simulated, tenants(BOTH % 1))
    flood, calm = run_loads(16, Load(server, "alpha", share * 100, 1),
                            Load(server, "beta", share / 2, 2))
    assert calm.refused == 0
    assert calm.delays
    assert flood.refused > flood.offered / 2


def test_work_is_shared_by_weights_over_ten_seconds(simulated, tenants):
    server = start_shared(simulated, tenants(BOTH % 3))
    flood = Load(server, "alpha", CAPACITY * 2, 1)
    calm = Load(server, "beta", CAPACITY, 2)
    begin = time.monotonic()
    flood, calm = run_loads(24, flood, calm)
    of_flood = flood.tokens(begin + 12, begin + 22)
    of_calm = calm.tokens(begin + 12, begin + 22)
    assert of_flood / (of_flood + of_calm) == pytest.approx(0.75, abs=0.0375)
