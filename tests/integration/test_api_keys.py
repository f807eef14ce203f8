"""Several named API keys: each is a tenant with a prefix cache, records and counters of its own."""

import json
import os
import signal
import time

import pytest

PROMPT = "Once upon a time there was a small dog who lived in a big house near the sea. " * 6


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text("# who may call\nalice:alpha:1\nbob:beta\n")
    path.chmod(0o600)
    return path


def bearer(key, **more):
    return {"Authorization": f"Bearer {key}", **more}


def cached(server, key, name, path="/v1/completions", body=None):
    """Prompt tokens that a request of this key found in the cache."""
    body = body or {"model": "tgi", "prompt": PROMPT, "max_tokens": 2}
    status, _, payload = server.request("POST", path, body, bearer(key, **{"X-Request-Id": name}))
    assert status == 200, payload
    return server.json("GET", f"/requests/{name}", headers=bearer(key))["cached_tokens"]


@pytest.mark.parametrize("path, body", [
    ("/generate", {"inputs": PROMPT, "parameters": {"max_new_tokens": 2}}),
    ("/v1/completions", {"model": "tgi", "prompt": PROMPT, "max_tokens": 2}),
])
def test_tenants_share_no_prefix(simulated, keys, path, body):
    server = simulated("--api-keys-file", keys, "--api-key", "plain:key")
    assert cached(server, "alpha:1", "a1", path, body) == 0
    found = cached(server, "alpha:1", "a2", path, body)
    assert found >= 64
    assert cached(server, "beta", "b1", path, body) == 0
    assert cached(server, "plain:key", "d1", path, body) == 0
    assert cached(server, "beta", "b2", path, body) == found
    metrics = server.metrics()
    assert metrics['penstock_tenant_requests_total{tenant="alice"}'] == 2
    assert metrics['penstock_tenant_requests_total{tenant="default"}'] == 1
    assert metrics['penstock_tenant_tokens_total{kind="generated",tenant="bob"}'] == 4


def test_records_belong_to_their_tenant(simulated, keys):
    server = simulated("--api-keys-file", keys, "--log-format", "json")
    cached(server, "alpha:1", "mine")
    for path in ("/requests/mine", "/requests/1"):
        assert server.request("GET", path, headers=bearer("alpha:1"))[0] == 200
        assert server.request("GET", path, headers=bearer("beta"))[0] == 404
        assert server.request("GET", path)[0] == 401
    server.stop()
    records = [json.loads(line) for line in server.lines if line.startswith('{"timestamp"')]
    access = [r for r in records if r.get("path") == "/v1/completions"]
    assert [r["tenant"] for r in access] == ["alice"]
    assert "alpha:1" not in server.output() and "beta" not in server.output()


def wait_key(server, key, status, seconds=10):
    """Repeats the request until the key gets this answer."""
    deadline = time.monotonic() + seconds
    while (got := server.request("GET", "/requests/none", headers=bearer(key))[0]) != status:
        assert time.monotonic() < deadline, (key, got)


def test_sighup_reads_the_keys_again(simulated, keys):
    server = simulated("--api-keys-file", keys)
    stream = server.request("POST", "/generate", {"inputs": "x", "parameters": {"max_new_tokens": 2}},
                            bearer("beta"))
    assert stream[0] == 200
    keys.write_text("alice:alpha:2\n")
    os.kill(server.popen.pid, signal.SIGHUP)
    wait_key(server, "alpha:2", 404)  # let in; there is no such request
    assert server.request("GET", "/requests/none", headers=bearer("alpha:1"))[0] == 401
    assert server.request("GET", "/requests/none", headers=bearer("beta"))[0] == 401

    keys.write_text("no colon\n")
    os.kill(server.popen.pid, signal.SIGHUP)
    server.wait_said(r"the API keys stay as they were: --api-keys-file .*:1: must be name:key")
    assert server.request("GET", "/requests/none", headers=bearer("alpha:2"))[0] == 404
    assert server.stop() == 0


def test_a_broken_file_ends_the_start(keys, simulated):
    keys.write_text("alice:alpha\nalice:beta\n")
    with pytest.raises(AssertionError, match=r":2: the name alice is given twice"):
        simulated("--api-keys-file", keys)
