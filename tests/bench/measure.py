"""Measures the walking system and prints JSON.

usage: measure.py [--requests N]

simshard     router CPU per streamed token and tokens/s: 64 streams, simulated shards with zero step time
demo_shard   tokens/s of one shard with the demo model, for 1, 8 and 32 streams
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import BIN, DEMO_MODEL, REPOSITORY, Server  # noqa: E402

KEPT = (
    "requests",
    "failures",
    "first_error",
    "seconds",
    "tokens",
    "tokens_per_second",
    "ttft",
    "inter_token_latency",
    "end_to_end",
    "server_cpu_us_per_token",
)


def load(server, streams, requests, tokens, pid=None):
    """One closed-loop run of penstock-bench; pid's CPU time is reported per token."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "report.json"
        command = [
            BIN / "penstock-bench",
            "--url",
            server.url,
            "--concurrency",
            streams,
            "--requests",
            requests,
            "--warmup",
            streams,
            "--max-new-tokens",
            tokens,
            "--output",
            output,
            "--no-progress",
        ]
        if pid is not None:
            command += ["--server-pid", pid]
        subprocess.run([str(c) for c in command], check=True, stdout=sys.stderr)
        report = json.loads(output.read_text())
    return {key: report[key] for key in KEPT if key in report}


def measure_router(requests):
    options = ("--shard-program", BIN / "penstock-simshard", "--step-time", "0ms", "--max-concurrent-requests", "256")
    with Server(*options, model=DEMO_MODEL) as server:
        report = load(server, 64, requests, 128, server.pid_of("penstock-router"))
    report["router_cpu_us_per_token"] = report.pop("server_cpu_us_per_token", None)
    return {"streams": 64, "step_time_ms": 0, **report}


def measure_shard():
    with Server(model=DEMO_MODEL) as server:
        return [{"streams": n, **load(server, n, max(16, 4 * n), 128)} for n in (1, 8, 32)]


def describe_machine():
    names = [
        line.split(":")[1].strip()
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    commit = subprocess.run(
        ["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "cpu": names[0] if names else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "commit": commit,
        "date": datetime.date.today().isoformat(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=4096, help="requests of the simulated run")
    arguments = parser.parse_args()
    result = {
        "machine": describe_machine(),
        "simshard": measure_router(arguments.requests),
        "demo_shard": measure_shard(),
    }
    print(json.dumps(result, indent=1))
    failures = result["simshard"]["failures"] + sum(run["failures"] for run in result["demo_shard"])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
