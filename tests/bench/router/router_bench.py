"""Measures the router alone, over simulated shards that answer at once, and prints JSON; on standard error a table.

usage: router_bench.py [--router "PATH [OPTION...]"]... [--tgi-router PATH] [--streams 1,64,128,512] [--rows 1,8,32]
                       [--tokens N] [--budget SECONDS] [--repeats N] [--output FILE] [--profile] [--write]

Each point has STREAMS open streams and at most ROWS sequences per step. It reports streamed tokens per second and per
second of the router's CPU time (user and system, from /proc), CPU time by thread, and events per read of the client.
With as many connections it also reports one-token requests per second and per CPU second. Several routers are measured
alternately, point by point, so that they run under the same conditions; the median of the repeats counts. TGI's router
uses the same simulated shard, which speaks its protocol.

`send` is the kernel's part: CPU time of one send() per event to as many clients.
--write makes docs/benchmarks/router.md.
--profile adds where the CPU time of the last router is spent at its largest point, by `perf`, if it is allowed.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "integration"))

from penstock_testing import BIN, DEMO_MODEL, REPOSITORY, Process  # noqa: E402

DOCUMENT = REPOSITORY / "docs/benchmarks/router.md"
LOAD = BIN / "router-load"
SEND_COST = BIN / "router-send-cost"
SLOTS = 256  # of the simulated shard: ours learns them, TGI's sends more and fails
EVENT_BYTES = 132  # of the streams below, with their chunk's frame
THREADS = ("scheduler", "text", "io")


def cpu_seconds(pid):
    """On-CPU seconds of a process by the names of its threads, to the nanosecond."""
    seconds = collections.Counter()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        seconds[(task / "comm").read_text().strip()] += int((task / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"processor": model.group(1) if model else platform.machine(), "cores": os.cpu_count(),
            "kernel": platform.release()}


def send_cost(streams):
    command = [str(SEND_COST), str(streams), str(EVENT_BYTES), "300000"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class Pair:
    """A router and its simulated shard."""

    def __init__(self, router, rows, is_tgi=False):
        self.folder = tempfile.TemporaryDirectory(prefix="bench-")
        path = os.path.join(self.folder.name, "shard")
        self.shard = Process([BIN / "penstock-simshard", "--model-id", DEMO_MODEL, "--shard-uds-path", path,
                              "--log-level", "info"])
        self.shard.wait_line("listening on")  # TGI's router does not try again
        command = self._tgi(router, path) if is_tgi else self._ours(router, path, rows)
        self.router = Process(command, cwd=self.folder.name if is_tgi else None)
        if is_tgi:
            self.router.wait_line("Connected")
        else:
            self.port = int(self.router.wait_line(r"listening on [\d.]+:(\d+)").group(1))
        self.pid = self.router.popen.pid

    @staticmethod
    def _ours(router, path, rows):
        return [*shlex.split(str(router)), "--model-id", DEMO_MODEL, "--shard-uds-path", path, "--port", "0",
                "--max-batch-size", rows, "--max-concurrent-requests", 1024]

    def _tgi(self, router, path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        out = pathlib.Path(self.folder.name) / "out"  # its default folder
        out.mkdir()
        (out / "tokenizer.json").symlink_to(DEMO_MODEL / "tokenizer.json")
        return [pathlib.Path(router).resolve(), "--master-shard-uds-path", path + "-0", "--tokenizer-name", DEMO_MODEL,
                "--hostname", "127.0.0.1", "--port", self.port, "--max-concurrent-requests", 1024,
                "--max-batch-size", SLOTS, "--usage-stats", "off"]

    def load(self, streams, requests, tokens, mode="stream"):
        before = cpu_seconds(self.pid)
        out = subprocess.run([str(LOAD), "127.0.0.1", str(self.port), str(streams), str(requests), str(tokens), mode],
                             check=True, capture_output=True, text=True).stdout
        report = json.loads(out)
        threads = cpu_seconds(self.pid) - before
        report["cpu"] = threads.total()
        report["threads"] = threads
        return report

    def stop(self):
        self.router.stop()
        self.shard.stop()
        self.folder.cleanup()


def measure(pair, streams, tokens, budget):
    """One point: enough requests for about `budget` seconds. A first run warms up and measures how many."""
    first = pair.load(streams, max(streams, 8), tokens)
    rate = first["requests"] / first["seconds"]
    report = pair.load(streams, max(streams, int(rate * budget)), tokens)
    return {"tokens_per_second": report["events"] / report["seconds"],
            "tokens_per_cpu_second": report["events"] / report["cpu"],
            "cpu_us_per_token": report["cpu"] * 1e6 / report["events"],
            **{f"{name}_us": seconds * 1e6 / report["events"] for name, seconds in report["threads"].items()
               if name in THREADS},
            "events_per_read": report["events"] / report["reads"]}


def measure_requests(pair, streams, budget):
    """One point: one-token requests that are not streamed."""
    first = pair.load(streams, max(2 * streams, 100), 1, "plain")
    rate = first["requests"] / first["seconds"]
    report = pair.load(streams, max(2 * streams, int(rate * budget)), 1, "plain")
    return {"requests_per_second": report["requests"] / report["seconds"],
            "requests_per_cpu_second": report["requests"] / report["cpu"],
            "cpu_us_per_request": report["cpu"] * 1e6 / report["requests"]}


def summary(runs):
    """Medians, and the spread of the rates per CPU second."""
    shown = {key: round(statistics.median(run.get(key, 0) for run in runs), 2) for key in runs[0]}
    rate = next(key for key in runs[0] if key.endswith("_per_cpu_second"))
    return {**shown, "least_and_most_per_cpu_second": [round(pick(run[rate] for run in runs)) for pick in (min, max)]}


def profile(pair, streams, tokens, budget):
    """Share of the router's CPU time by function, most first; None where perf is not allowed."""
    if shutil.which("perf") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "perf.data")
        command = ["perf", "record", "-q", "-F", "1999", "-g", "-o", data, "-p", str(pair.pid)]
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        measure(pair, streams, tokens, budget)
        recorder.terminate()
        recorder.wait()
        show = ["perf", "report", "-i", data, "--stdio", "--no-children", "-g", "none", "--percent-limit", "0.7"]
        shown = subprocess.run(show, capture_output=True, text=True).stdout
    lines = [line.split(None, 4) for line in shown.splitlines() if line.strip() and not line.startswith("#")]
    return [{"percent": float(parts[0].rstrip("%")), "function": parts[-1]} for parts in lines if len(parts) >= 3]


def point(pairs, streams, rows, options):
    """The results of each router at this point."""
    streamed, requests = {path: [] for path in pairs}, {path: [] for path in pairs}
    for _ in range(options.repeats):
        for path, pair in pairs.items():
            streamed[path].append(measure(pair, streams, options.tokens, options.budget))
        for path, pair in pairs.items():
            requests[path].append(measure_requests(pair, streams, options.budget))
    return [{"router": path, "streams": streams, "rows": rows, "streamed": summary(streamed[path]),
             "one_token_requests": summary(requests[path])} for path in pairs]


def cell(shown, kind):
    least, most = (f"{rate / 1e3:.3g}" for rate in shown["least_and_most_per_cpu_second"])
    return (f"{shown[f'{kind}_per_cpu_second'] / 1e3:.3g} ({least} to {most}) "
            f"| {shown[f'{kind}_per_second'] / 1e3:.3g}")


def shown_name(command):
    """The program's name and its options, without the folder."""
    program, *options = shlex.split(command)
    return " ".join([pathlib.Path(program).name, *options])


def table(points):
    """Markdown; all rates in thousands."""
    lines = ["| router | streams | rows | tokens per CPU second | per second "
             "| one-token requests per CPU second | per second |",
             "|---|---:|---:|---:|---:|---:|---:|"]
    lines += [f"| {shown_name(each['router'])} | {each['streams']} | {each['rows']} "
              f"| {cell(each['streamed'], 'tokens')} "
              f"| {cell(each['one_token_requests'], 'requests')} |" for each in points]
    return "\n".join(lines)


def page(report):
    where = report["machine"]
    return f"""# The router

Made by `tests/bench/router/run --write`. Do not edit.

Measured {report["date"]} on {where["processor"]}, {where["cores"]} cores, Linux {where["kernel"]}.
Commit: {report["commit"]}.

Simulated shards answer at once, and a small client reads without parsing. CPU time is that of all
threads of the router. Each stream has {report["tokens_per_stream"]} tokens. *Rows* is the most sequences in a step
(`--max-batch-size`). Rates are in thousands: the median, and the least and the most in brackets.
[Earlier measurements](router-recorded.md) compare it with TGI's router.

{table(report["points"])}
"""


def numbers(text):
    return [int(part) for part in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--router", action="append", default=[])
    parser.add_argument("--tgi-router")
    parser.add_argument("--streams", type=numbers, default=[1, 64, 128, 512])
    parser.add_argument("--rows", type=numbers, default=[1, 8, 32])
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--budget", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=argparse.FileType("w"), default=sys.stdout)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    routers = {path: False for path in arguments.router or [str(BIN / "penstock-router")]}
    if arguments.tgi_router:
        routers[arguments.tgi_router] = True
    points = []
    for rows in arguments.rows:
        pairs = {path: Pair(path, rows, is_tgi) for path, is_tgi in routers.items()}
        try:
            for streams in arguments.streams:
                points += point(pairs, streams, rows, arguments)
                print(points[-len(pairs):], file=sys.stderr)
            last = list(pairs.values())[-1]
            hot = None
            if arguments.profile and rows == arguments.rows[-1]:
                hot = profile(last, arguments.streams[-1], arguments.tokens, arguments.budget)
        finally:
            for pair in pairs.values():
                pair.stop()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True)
    report = {"date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(), "machine": machine(),
              "tokens_per_stream": arguments.tokens, "points": points,
              "send": [send_cost(streams) for streams in arguments.streams], "profile": hot}
    print(table(points), file=sys.stderr)
    if arguments.write:
        DOCUMENT.write_text(page(report))
    json.dump(report, arguments.output, indent=2)
    arguments.output.write("\n")


if __name__ == "__main__":
    main()
