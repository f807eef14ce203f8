"""Learning to rank (NeurIPS 2024): a burst of 2,000 requests with ShareGPT's lengths, ranked by predictions
whose error is stated, and a stream of them, in which long answers would starve."""

import csv
import functools
import pathlib
import tempfile

from replay import TRACES, program, replay, row

# Kendall's tau -> seconds per token. The reference's own simulation of the same burst.
TABLE = {0.28: 0.222, 0.40: 0.174, 0.51: 0.146, 0.60: 0.129, 0.69: 0.118, 0.80: 0.109}
FCFS, ORACLE = 0.417, 0.103
PUBLISHED_TAU = 0.54
LENGTHS = range(4, 2049)  # of prompts and outputs, as vLLM's benchmark takes them from ShareGPT
STREAM_RATE = 20  # requests/s: a tenth more than the machine answers

MACHINE = {
    "machine": "a100-llama-3-8b-tp1-generic",
    "slots": 256,
    "blocks": 9375,  # of 16 tokens: 150k tokens of K and V
    "max_step_tokens": 512,
}
BURST = {"requests": 2000, "time_scale": 0}
STREAM = {"requests": 4000, "rate": STREAM_RATE}
GUARD = {"starvation_steps": 1000, "starvation_quantum": 10}
OF_THE_PAPER = {"starvation_steps": 200, "starvation_quantum": 10}
NO_GUARD = {"starvation_steps": 0}


@functools.cache
def lengths():
    """ShareGPT's lengths within LENGTHS, as a file. It lives as long as the process."""
    folder = tempfile.TemporaryDirectory()
    path = pathlib.Path(folder.name) / "lengths.csv"
    with open(TRACES / "lengths_sharegpt.csv") as file, open(path, "w") as out:
        out.write("num_prefill_tokens,num_decode_tokens\n")
        for line in csv.DictReader(file):
            prompt, output = int(line["ContextTokens"]), int(line["GeneratedTokens"])
            if prompt in LENGTHS and output in LENGTHS:
                out.write(f"{prompt},{output}\n")
    return folder, path


def run(load, **options):
    return replay("trace", lengths()[1], **MACHINE, **load, **options)


def ranked(load, noise, guard):
    return run(load, order="learned", forecast=True, forecast_noise=noise, **guard)


def per_token(result):
    return result["normalised_ms"]["mean"] / 1000


def longest(result):
    return result["longest_wait_ms"]["max"] / 1000


def noise_for(tau):
    """The noise whose forecasts have this tau, by bisection: more noise gives less."""
    low, high = 0.0, 6.0
    while True:
        noise = (low + high) / 2
        found = ranked(BURST, noise, NO_GUARD)["forecast_tau"]
        if abs(found - tau) < 0.005 or high - low < 1e-3:
            return noise
        low, high = (noise, high) if found > tau else (low, noise)


def learned_ranking():
    """Learning to rank: ShareGPT lengths on one A100, forecasts with noise; a burst of 2,000 and a stream."""
    fcfs, oracle = per_token(run(BURST, order="fcfs")), per_token(ranked(BURST, 0, NO_GUARD))
    rows = [table_row("fcfs", fcfs, FCFS)]
    for tau, reference in TABLE.items():
        rows.append(table_row(f"tau {tau:.2f}", per_token(ranked(BURST, noise_for(tau), NO_GUARD)), reference))
    rows.append(table_row("oracle", oracle, ORACLE))
    noise = noise_for(PUBLISHED_TAU)
    burst = ranked(BURST, noise, NO_GUARD)
    closed = 100 * (fcfs - per_token(burst)) / (fcfs - oracle)
    rows.append(row("gap from fcfs to the oracle closed at tau 0.54", closed, "%", ">= 85", closed >= 85))
    return rows + guard_rows(noise, burst) + cost_rows(burst)


def table_row(what, value, reference):
    near = abs(value / reference - 1) <= 0.15
    return row(f"latency per token, {what}", value, "s", f"{reference} +- 15 %", near)


def guard_rows(noise, burst):
    free, guarded = ranked(STREAM, noise, NO_GUARD), ranked(STREAM, noise, GUARD)
    shorter = longest(free) / longest(guarded)
    more = 100 * (per_token(guarded) / per_token(free) - 1)
    rows = [
        row(f"stream of {STREAM_RATE} req/s: longest wait without a guard", longest(free), "s", "", True),
        row("longest wait without / with the guard (1000, 10)", shorter, "x", ">= 3", shorter >= 3),
        row("latency per token, more with the guard", more, "%", "<= 35", more <= 35),
    ]
    for name, guard in (("(1000, 10)", GUARD), ("(200, 10)", OF_THE_PAPER)):
        with_it = ranked(BURST, noise, guard)
        more = 100 * (per_token(with_it) / per_token(burst) - 1)
        cut = longest(burst) / longest(with_it)
        rows.append(row(f"burst: longest wait without / with the guard {name}", cut, "x", "", True))
        rows.append(row("latency per token, more with the guard", more, "%", "", True))
    return rows


def cost_rows(result):
    """Each request is predicted once, before it is queued."""
    cost = program("penstock-core-bench")["rank_300_tokens"]
    share = 100 * cost["mean_us"] * result["requests"] / (1e6 * result["seconds"])
    return [
        row("a prediction, mean", cost["mean_us"], "us", "< 50", cost["mean_us"] < 50),
        row("predictions / steps", share, "%", "< 2", share < 2),
    ]
