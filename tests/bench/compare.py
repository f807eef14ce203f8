"""Measures two builds beside each other and prints ratios new : old, as JSON.

usage: compare.py OLD_BUILD [NEW_BUILD] [--rounds N] [--only PIECE,...] [--output FILE]

OLD_BUILD and NEW_BUILD are build folders with all programs (default of the second: build). The two take turns within
each round, so that they see the same machine. A ratio is the median of the rounds; above 1 the new build is faster.

decode-1, decode-8, decode-32   tokens per second of the shard alone, 1.1B shape, 1,024 positions
prefill-512                     tokens per second of one prompt of 512 tokens
router-1, router-32             streamed tokens per CPU second of the router, 128 streams, 1 or 32 rows a step
core-step                       steps of the scheduler per second, 256 running and 4,096 queued
start-cold, start-warm          starts per second until the shard is ready, without and with a weights cache
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "cpu"), str(HERE / "router"), str(HERE.parent / "integration")]

import programs  # noqa: E402
import router_bench  # noqa: E402
from penstock_testing import ADDRESS, DEMO_MODEL, Process  # noqa: E402

SHAPE = "1.1b"


class ShardOf(programs.Answering):
    """penstock-shard-bench of one build, with the model that the new build made."""

    def __init__(self, build):
        super().__init__(build / "bin" / "penstock-shard-bench", 40960, 2560, "--model-id", programs.model(SHAPE),
                         "--cpu-threads", programs.THREADS, "--log-level", "warning")

    def rate(self, kind, size):
        words = ("steps", size, 1024, 1.5) if kind == "decode" else ("prompts", size, 1.5)
        return size / statistics.median(self._ask(*words)["seconds"])


def measure_shards(builds, rounds, pieces):
    wanted = [piece for piece in pieces if piece.startswith(("decode", "prefill"))]
    rates = {piece: [[] for _ in builds] for piece in wanted}
    if wanted:
        # One program at a time holds the weights in memory; the order changes from round to round.
        for turn in range(rounds):
            for index in (0, 1) if turn % 2 == 0 else (1, 0):
                with ShardOf(builds[index]) as shard:
                    for piece in wanted:
                        kind, size = piece.split("-")
                        rates[piece][index].append(shard.rate(kind, int(size)))
    return rates


class RouterPair(router_bench.Pair):
    """A router over the simulated shard of its own build: the two may speak another version of the protocol."""

    def __init__(self, build, rows):
        self.build = build
        self.folder = tempfile.TemporaryDirectory(prefix="bench-")
        path = f"{self.folder.name}/shard"
        self.shard = Process([build / "bin" / "penstock-simshard", "--model-id", DEMO_MODEL, "--shard-uds-path", path,
                              "--log-level", "info"])
        self.shard.wait_line("listening on")
        self.router = Process(self._ours(build / "bin" / "penstock-router", path, rows))
        self.port = int(self.router.wait_line(r"listening on [\d.]+:(\d+)").group(1))
        self.pid = self.router.popen.pid


def measure_routers(builds, rounds, pieces):
    rates = {}
    for piece in (piece for piece in pieces if piece.startswith("router-")):
        pairs = [RouterPair(build, int(piece.split("-")[1])) for build in builds]
        try:
            runs = [[router_bench.measure(pair, 128, 100, 2.0)["tokens_per_cpu_second"] for pair in pairs]
                    for _ in range(rounds)]
        finally:
            for pair in pairs:
                pair.stop()
        rates[piece] = [list(column) for column in zip(*runs)]
    return rates


def measure_core(builds, rounds, pieces):
    if "core-step" not in pieces:
        return {}
    rates = [[], []]
    for _ in range(rounds):
        for index, build in enumerate(builds):
            done = subprocess.run([build / "bin" / "penstock-core-bench"], check=True, capture_output=True, text=True)
            rates[index].append(1e6 / json.loads(done.stdout)["step_256_running_4096_queued"]["p50_us"])
    return {"core-step": rates}


def ready_seconds(build, *options):
    begin = time.monotonic()
    server = Process([build / "bin" / "penstock-launcher", "--model-id", programs.model(SHAPE), "--port", "0",
                      "--kv-cache-memory", "240MiB", "--max-total-tokens", "2048", *options])
    try:
        server.wait_line(ADDRESS)
        return time.monotonic() - begin
    finally:
        server.stop()


def measure_starts(builds, rounds, pieces):
    rates = {}
    for piece in (piece for piece in pieces if piece.startswith("start-")):
        rates[piece] = [[], []]
        with tempfile.TemporaryDirectory(dir=programs.MODELS) as folder:
            options = [("--weights-cache", f"{folder}/{index}") if piece == "start-warm" else () for index in (0, 1)]
            for index, build in enumerate(builds):
                ready_seconds(build, *options[index])  # fills the page cache, and the weights cache
            for _ in range(rounds):
                for index, build in enumerate(builds):
                    rates[piece][index].append(1 / ready_seconds(build, *options[index]))
    return rates


PIECES = ("decode-1", "decode-8", "decode-32", "prefill-512", "router-1", "router-32", "core-step", "start-cold",
          "start-warm")


def row(old, new):
    ratios = [b / a for a, b in zip(old, new)]
    return {"old": round(statistics.median(old), 3), "new": round(statistics.median(new), 3),
            "ratio": round(statistics.median(ratios), 3), "ratios": [round(ratio, 3) for ratio in ratios]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path, nargs="?", default=programs.BUILD)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PIECES))
    parser.add_argument("--output", type=argparse.FileType("w"), default=sys.stdout)
    arguments = parser.parse_args()
    if unknown := set(arguments.only) - set(PIECES):
        parser.error(f"--only: unknown {', '.join(sorted(unknown))}; there are {', '.join(PIECES)}")
    builds = (arguments.old.resolve(), arguments.new.resolve())
    others = programs.Others()
    rates = {}
    for measured in (measure_shards, measure_routers, measure_core, measure_starts):
        rates |= measured(builds, arguments.rounds, arguments.only)
    report = {"machine": programs.machine(), "rounds": arguments.rounds, "others_share": round(others.share(), 3),
              "pieces": {piece: row(*rates[piece]) for piece in arguments.only}}
    for piece, shown in report["pieces"].items():
        print(f"{piece:12} {shown['ratio']:.3f}  ({min(shown['ratios']):.3f} to {max(shown['ratios']):.3f})",
              file=sys.stderr)
    json.dump(report, arguments.output, indent=1)
    arguments.output.write("\n")


if __name__ == "__main__":
    main()
