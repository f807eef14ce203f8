"""The shard with router and HTTP: their cost, latency by number of users, and the effect of a long prompt."""

import json
import statistics
import subprocess
import time

from programs import BIN, Server, ShardAlone, load, median, model
from streams import Streams  # programs puts tests/bench on the path

STREAMS = 8  # of acceptance 3
USERS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32)
STALL_STREAMS = 16
STALL_PROMPT = 64
STALL_TOKENS = 1024  # more than come until the long prompt is through
DECODE_STEPS = 100  # before the long prompt and after it
LONG_PROMPT = 2048
ROUNDS = 5


def serve(shape, *options):
    """Starts a server with a KV cache of about 20,000 tokens, whose memory is pre-faulted."""
    limits = ("--max-batch-size", 64, "--max-concurrent-requests", 128, "--kv-cache-memory", "512MiB")
    return Server(*limits, *options, model=model(shape))


def steady_rate(report, streams):
    """Tokens per second while all streams decode."""
    return streams / report["inter_token_latency"]["mean_ms"] * 1000


def through_http(shape, quick, *options):
    """The shard alone and over router, HTTP and SSE, alternately: tokens per second of both."""
    rounds, tokens = (1, 64) if quick else (8, 128)
    alone, http = [], []
    with ShardAlone(shape, *options) as shard, serve(shape, *options) as server:
        load(server, STREAMS, 16)
        for _ in range(rounds):
            step = shard.decode(STREAMS, 64 + tokens // 2, 1 if quick else 3)
            alone.append(step["mean_tokens_per_second"])
            http.append(steady_rate(load(server, STREAMS, tokens), STREAMS))
    return {
        "streams": STREAMS,
        "alone_tokens_per_second": alone,
        "http_tokens_per_second": http,
        "ratio": median(http) / median(alone),
    }


def one_load(server, count, tokens):
    report = load(server, count, tokens, requests=count if count > 2 else 2)
    gaps = report["inter_token_latency"]
    return {
        "users": count,
        "ms_per_token": gaps["mean_ms"],
        "p50_ms": gaps["p50_ms"],
        "p99_ms": gaps["p99_ms"],
        "ttft_p50_ms": report["ttft"]["p50_ms"],
        "tokens_per_second": count / gaps["mean_ms"] * 1000,
    }


def users(shape, quick, *options):
    """Latency per token for each number of streams, as the median of three rounds."""
    counts, rounds = ((1, 4, 10), 1) if quick else (USERS, 3)
    tokens = 24 if quick else 48
    with serve(shape, *options) as server:
        load(server, counts[-1], 8)
        loads = [[one_load(server, count, tokens) for count in counts] for _ in range(rounds)]
    rows = [sorted(row, key=lambda run: run["ms_per_token"])[(rounds - 1) // 2] for row in zip(*loads)]
    alone = rows[0]["ms_per_token"]
    within = 0
    for row in rows:
        row["times_one_user"] = row["ms_per_token"] / alone
        if row["times_one_user"] > 2:
            break
        within = row["users"]
    for row in rows:
        row["times_one_user"] = row["ms_per_token"] / alone
    return {"rows": rows, "most_users_within_twice": within, "most_measured": counts[-1]}


def draw_users(results):
    """SVG of {shape: result of users}."""
    charts = []
    for title, key, label in (
        ("Time per token against users", "times_one_user", "times the time of one user"),
        ("Throughput against users", "tokens_per_second", "tokens/s of all users"),
    ):
        curves = [
            {"name": shape, "points": [[row["users"], row[key]] for row in result["rows"]]}
            for shape, result in results.items()
        ]
        charts.append({"title": title, "x_label": "users at once", "y_label": label, "curves": curves})
    command = [str(BIN / "penstock-chart")]
    return subprocess.run(command, input=json.dumps(charts), capture_output=True, text=True, check=True).stdout


def open_stream(streams, first, length, max_tokens):
    """Of /generate_stream, which has an event for every token, also for one that is half a character."""
    text = (chr(ord("A") + first) + "penstock " * length)[:length]  # a token per byte; no two share a prefix
    return streams.open("/generate_stream", {"inputs": text, "parameters": {"max_new_tokens": max_tokens}})


def decode_for(streams, running, steps):
    """Waits until all streams have `count` more tokens; returns the gaps."""
    begin = max(reading.times[-1] for reading in running)
    streams.wait(running, max(len(reading.times) for reading in running) + steps)
    return [gap for reading in running for gap in reading.gaps(begin, time.monotonic())]


def one_prompt(streams, first):
    """16 streams decode while a long prompt is computed. They also decode alone before and after it, because the
    processor's speed may change; the usual gap is that of both."""
    running = [open_stream(streams, first + i, STALL_PROMPT, STALL_TOKENS) for i in range(STALL_STREAMS)]
    streams.wait(running, 8)
    alone = decode_for(streams, running, DECODE_STEPS)
    long_prompt = open_stream(streams, first + STALL_STREAMS, LONG_PROMPT, 4)
    streams.wait([long_prompt], 3)
    begin, end = long_prompt.began, long_prompt.times[-1]
    alone += decode_for(streams, running, DECODE_STEPS)
    decode_step = statistics.median(alone)
    gaps = [gap for reading in running for gap in reading.gaps(begin - decode_step, end)]
    for reading in running:
        streams.close(reading)
    return {
        "decode_step_ms": decode_step * 1000,
        "longest_decode_gap_ms": max(alone) * 1000,
        "longest_gap_ms": max(gaps) * 1000,
        "p99_gap_ms": statistics.quantiles(gaps, n=100)[98] * 1000,
        "gap_ratio": max(gaps) / decode_step,
        "ttft_ms": (long_prompt.times[0] - begin) * 1000,
    }


def gaps_around_a_prompt(shape, rounds, *options):
    """Longest gap of running streams while a long prompt is computed, and their usual gap: median and all rounds."""
    with serve(shape, *options) as server, Streams(server) as streams:
        runs = [one_prompt(streams, (STALL_STREAMS + 1) * i) for i in range(rounds)]
    middle = sorted(runs, key=lambda run: run["gap_ratio"])[(rounds - 1) // 2]
    return {**middle, "rounds": runs}


def stall_free(shape, quick, *options):
    """Runs whole prompts first, which also gives the decode-only step. The budget gives half of that to the prompt."""
    room = ("--max-total-tokens", LONG_PROMPT + 512)  # what warm-up has to try is no longer than that
    one_step = ("--prefill", "whole", "--max-step-tokens", LONG_PROMPT + 64)
    whole = gaps_around_a_prompt(shape, 1, *one_step, *room, *options)
    target = round(1.5 * whole["decode_step_ms"], 1)
    budget = gaps_around_a_prompt(shape, 1 if quick else ROUNDS, "--target-inter-token-ms", target, *room, *options)
    return {"target_inter_token_ms": target, "budget": budget, "whole": whole}
