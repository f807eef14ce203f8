"""effective-batching's interface and its comparison of batching modes, on the real binaries."""

import json
import pathlib
import re
import socket
import subprocess
import xml.etree.ElementTree

import pytest

from penstock_testing import BIN, DEMO_MODEL, Server, at_once, most_wake_ups, wake_ups

FORMULAS = ("latency-per-token", "throughput", "total-tokens-handled", "total-elapsed-time")


def infer(server, prompt, num_tokens, **more):
    return server.json("POST", "/inference", {"prompt": prompt, "num_tokens": num_tokens, **more})


def formulas(requests):
    """The original's four figures of (seconds, tokens) pairs."""
    seconds = sum(e for e, _ in requests)
    tokens = sum(n for _, n in requests)
    return dict(zip(FORMULAS, (sum(e / n for e, n in requests) / len(requests), tokens / seconds,
                               tokens, seconds)))


@pytest.fixture
def bench(tmp_path):
    """bench(*options) runs `penstock-bench effective` in an empty folder."""
    def run(*options, env=None):
        return subprocess.run([BIN / "penstock-bench", "effective", *map(str, options)],
                              cwd=tmp_path, env=env or {}, capture_output=True, text=True,
                              timeout=120)
    return run


def test_exactly_num_tokens_past_the_end_token(simulated):
    server = simulated("--tokens", "echo")  # says the prompt, then nothing but the end token
    answer = infer(server, "one two", 40, details=True)
    assert answer["completion"].startswith("one two")
    assert len(answer["details"]["tokens"]) == 40
    assert server.json("GET", "/stats")["total-tokens-handled"] == 40
    too_many = {"prompt": "one two", "num_tokens": 1_000_000}
    refused = server.json("POST", "/inference", too_many, expect=422)
    assert "`num_tokens` (1000000) must be at most" in refused["error"], "never cut"


@pytest.mark.parametrize(("step_time", "longest"), [("20ms", 40), ("0ms", 4)])
def test_stats_are_the_formulas_of_the_request_log(simulated, step_time, longest):
    server = simulated("--batching", "dynamic", "--step-time", step_time, "--log-format", "json")
    at_once(24, lambda i: infer(server, f"Request {i}", 1 + longest * (i % 4) // 3))
    stats = server.json("GET", "/stats")
    server.stop()
    records = [json.loads(line) for line in server.lines if '"path":"/inference"' in line]
    expected = formulas([(r["elapsed_ms"] / 1000, r["generated_tokens"]) for r in records])
    assert len(records) == 24
    for name in FORMULAS:
        assert stats[name] == pytest.approx(expected[name], rel=0.01), name
    assert stats["batching"] == "continuous"


def test_stats_begin_again_after_a_reset(simulated):
    server = simulated()
    infer(server, "hi", 5)
    assert server.json("DELETE", "/stats") == {"reset": True}
    assert server.json("GET", "/stats")["requests"] == 0
    infer(server, "hi", 7)
    assert server.json("GET", "/stats")["total-tokens-handled"] == 7


@pytest.mark.parametrize("shard", ["penstock-simshard", "penstock-shard"])
def test_an_idle_server_hardly_wakes(shard):
    with Server("--shard-program", BIN / shard, "--num-shard", "2", "--batching", "dynamic",
                "--max-total-tokens", "256") as server:
        infer(server, "hi", 5)
        server.json("GET", "/stats")
        silent, _other_end = socket.socketpair()  # a span of idle time: a wait for what never comes
        silent.settimeout(1.5)
        processes = [server.popen.pid, *server.children()]
        assert len(processes) == 4, "launcher, router and shards"
        with pytest.raises(TimeoutError):
            silent.recv(1)  # the request's last steps are over
        before = wake_ups(processes)
        with pytest.raises(TimeoutError):
            silent.recv(1)
        assert most_wake_ups(processes, before) <= 1.5 * 8, "the original wakes 100 times a second"


def test_the_original_clients_flow(simulated, bench, tmp_path):
    """README: an .env file with the address, a run, a single request."""
    server = simulated("--batching", "nobatch")
    (tmp_path / ".env").write_text(f"IP={server.host}:{server.port}\n")
    done = bench("--numsamples", 12, "--rate", 200)
    assert done.returncode == 0, done.stderr
    for name in FORMULAS:
        assert f"{name}: " in done.stdout
    assert "requests: 12" in done.stdout
    done = bench("--prompt", "hi", "--numtokens", 10)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["completion"].startswith("hi")
    assert "requests: 13" in done.stdout


def test_an_unreachable_server_is_named(bench):
    done = bench("--url", "127.0.0.1:1", "--numsamples", 1)
    assert done.returncode == 1
    assert "127.0.0.1:1: connect" in done.stderr and "serve-effective" in done.stderr


def test_a_server_of_another_mode_is_refused(simulated, bench):
    server = simulated("--batching", "dynamic")
    url = f"{server.host}:{server.port}"
    done = bench("--numsamples", 2, "--attach", f"nobatch={url}")
    assert done.returncode == 1
    assert done.stderr.endswith("nobatch: this server has --batching continuous; it must "
                                "have --batching none\n"), done.stderr
    done = bench("--numsamples", 2, "--rate", 100, "--attach", f"dynamic={url}")
    assert done.returncode == 0, done.stderr


def test_an_option_that_undoes_the_mode_is_refused(bench):
    done = bench("--numsamples", 2, "--", "--model-id", DEMO_MODEL, "--shard-program",
                 BIN / "penstock-simshard", "--batching", "dynamic")
    assert done.returncode == 1
    assert "nobatch: this server has --batching continuous; it must" in done.stderr


def test_a_server_that_cannot_start_says_why(bench):
    done = bench("--", "--model-id", "/no-such-folder")
    assert done.returncode == 1
    assert "no-such-folder" in done.stderr


def test_a_missing_launcher_is_reported(bench):
    done = bench("--launcher", "no-such-program", "--", "--model-id", DEMO_MODEL)
    assert done.returncode == 1
    assert "no-such-program" in done.stderr and "cannot be executed" in done.stderr


def test_three_modes_give_the_same_tokens_and_every_output(bench, tmp_path):
    out = tmp_path / "out"
    done = bench("--numsamples", 30, "--repeats", 2, "--output", out, "--", "--model-id",
                 DEMO_MODEL, "--shard-program", BIN / "penstock-simshard", "--step-time", "100us")
    assert done.returncode == 0, done.stderr
    assert "yes  every request has the same tokens in every mode" in done.stdout
    assert "yes  every request was answered" in done.stdout
    for name in ("index.html", "stats.txt", "checks.txt", "requests.csv"):
        assert (out / name).stat().st_size > 0
    rows = (out / "requests.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * 2 * 30
    for mode in ("nobatch", "static", "dynamic"):
        buckets = (out / f"{mode}.csv").read_text().splitlines()
        assert buckets[0] == "num_tokens,mean_latency_s"
        assert len(buckets) > 15
        check_stats(out, mode, rows)
    for name in ("latency", "latency-by-mode", "timeline", "steps"):
        picture = (out / f"{name}.svg").read_text()
        xml.etree.ElementTree.fromstring(picture)
        assert "dynamic" in picture
    steps = {mode: steps_of(out / "timeline.svg", mode) for mode in ("nobatch", "dynamic")}
    assert steps["dynamic"] < 0.7 * steps["nobatch"], "requests share steps"


def check_stats(out: pathlib.Path, mode, rows):
    """The server's figures of each repeat agree with those computed from its requests."""
    repeats = json.loads((out / f"{mode}.stats.json").read_text())
    assert len(repeats) == 2
    for number, stats in enumerate(repeats, 1):
        requests = [row.split(",") for row in rows if row.startswith(f"{mode},{number},")]
        expected = formulas([(float(row[6]), int(row[3])) for row in requests])
        for name in FORMULAS:
            assert stats[name] == pytest.approx(expected[name], rel=0.01), (mode, number, name)
    tokens = sum(stats["total-tokens-handled"] for stats in repeats)
    seconds = sum(stats["wall-clock-seconds"] for stats in repeats)
    assert tokens / seconds == pytest.approx(table_rate(out, mode), rel=0.1), "no other mode's time"


def table_rate(out: pathlib.Path, mode):
    """Tokens per second of the wall clock in stats.txt."""
    rows = (out / "stats.txt").read_text().splitlines()
    row = next(line for line in rows if line.startswith(mode + " "))
    return float(row.split("|")[2].split()[0])


def steps_of(timeline: pathlib.Path, mode):
    return int(re.search(rf"{mode}: 30 requests in (\d+) steps", timeline.read_text()).group(1))
