"""Two ranks while another process computes all the time, and the processor time of idle ranks."""

import os
import pathlib
import subprocess
import sys
import threading
import time

from penstock_testing import DEMO_MODEL
from programs import Server, load, median, model

RANKS = 2
STREAMS = (1, 8)
# The kernel kills this process when the benchmark ends, even if the benchmark was killed.
BUSY = "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL)\nwhile True: pass"


class Busy:
    """A process of normal priority that computes without pause."""

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, "-c", BUSY])
        return self

    def __exit__(self, *exception):
        self.process.kill()
        self.process.wait()


def rank_seconds(server):
    """Processor time of all ranks, including threads that have ended."""
    ticks = 0
    for rank in range(RANKS):
        stat = pathlib.Path(f"/proc/{server.pid_of('penstock-shard', rank)}/stat").read_text()
        ticks += sum(map(int, stat[stat.rindex(")") + 2:].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def idle_share(server, seconds):
    """Share of one processor that all ranks use."""
    begin, before = time.monotonic(), rank_seconds(server)
    threading.Event().wait(seconds)  # measures an idle server
    return (rank_seconds(server) - before) / (time.monotonic() - begin)


def one_turn(server, streams, tokens):
    gaps = load(server, streams, tokens, requests=max(2, streams))["inter_token_latency"]
    return {"mean_ms": gaps["mean_ms"], "p50_ms": gaps["p50_ms"], "worst_ms": gaps["max_ms"]}


def compare(server, streams, tokens, rounds):
    quiet, busy = [], []
    for _ in range(rounds):
        quiet.append(one_turn(server, streams, tokens))
        with Busy():
            busy.append(one_turn(server, streams, tokens))
    alone = median(turn["p50_ms"] for turn in quiet)
    row = {"streams": streams, "quiet": quiet, "busy": busy}
    for key in ("mean_ms", "p50_ms", "worst_ms"):
        row[f"times_{key.removesuffix('_ms')}"] = median(t[key] for t in busy) / median(t[key] for t in quiet)
    row["worst_of_all"] = max(turn["worst_ms"] for turn in busy) / alone
    return row


def beside_busy(shape, tokens, rounds, quick):
    """Gaps between tokens, alternately on a quiet machine and with a busy process."""
    folder = DEMO_MODEL if shape == "demo" else model(shape)
    small = ("--max-total-tokens", 1024, "--kv-cache-memory", "128MiB")  # all memory is pre-faulted
    with Server("--num-shard", RANKS, "--cpu-threads", 1, *small, model=folder) as server:
        load(server, STREAMS[-1], 8)
        idle = idle_share(server, 2 if quick else 10)
        rows = [compare(server, streams, tokens, 1 if quick else rounds) for streams in STREAMS]
    return {"ranks": RANKS, "idle_share": idle, "rows": rows}
