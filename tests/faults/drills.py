#!/usr/bin/env python3
"""Runs drills (drill.py) and adds their results to one file. A drill that is in the file is not run again.

The file has a line of JSON for each drill. A drill that failed names its problems; `--seeds N` runs it again alone.
The exit status is 1 if a drill of these seeds failed. `--summary` only sums what is in the file, and
`--summary FILE` writes the sum there.
"""

import argparse
import asyncio
import collections
import json
import pathlib
import subprocess
import sys
import time

import drill as drills

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "drills" / "results.jsonl"
TOTALS = ("lost", "repeated", "differing", "failed", "hung")


def read_results(path):
    lines = path.read_text().splitlines() if path.exists() else []
    return {result["seed"]: result for result in map(json.loads, lines)}


def percentile(values, part):
    return values[min(len(values) - 1, int(part * len(values)))] if values else None


def commit():
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True,
                          check=False).stdout.strip()


def summarize(results):
    """What docs/promises.md shows."""
    own = sorted(p for r in results if r["groups"] == 1 for p in r["pauses_ms"])
    other = sorted(p for r in results if r["groups"] == 2 for p in r["pauses_ms"])
    return {
        "drills": len(results), "streams": len(results) * drills.STREAMS,
        "passed": sum(not r["problems"] for r in results),
        "failed_seeds": sorted(r["seed"] for r in results if r["problems"]),
        **{what: sum(r[what] for r in results) for what in TOTALS},
        "leaks": sum(any("leak" in p or "process" in p for p in r["problems"]) for r in results),
        "by_fault": dict(sorted(collections.Counter(r["fault"] for r in results).items())),
        "by_engine": dict(sorted(collections.Counter(r["engine"] for r in results).items())),
        "pauses": len(own) + len(other),
        "pause_ms_one_group": {"p50": percentile(own, 0.5), "p99": percentile(own, 0.99)},
        "pause_ms_two_groups": {"p50": percentile(other, 0.5), "p99": percentile(other, 0.99)},
        "commit": commit(), "date": time.strftime("%Y-%m-%d"),
    }


async def run_all(seeds, path):
    done = read_results(path)
    oracles = {}
    failed = 0
    for seed in seeds:
        if seed not in done:
            drill = drills.Drill.draw(seed)
            key = (drill.engine, drill.ranks)
            if key not in oracles:
                oracles[key] = await drills.undisturbed(*key)
            done[seed] = await drills.run(drill, oracles[key])
            with open(path, "a") as file:
                file.write(json.dumps(done[seed]) + "\n")
        result = done[seed]
        failed += bool(result["problems"])
        where = f"{result['engine']}, {result['groups']} groups of {result['ranks']}"
        print(f"{'FAIL' if result['problems'] else 'ok':4} {seed}: {result['fault']}, {where}, "
              f"{result['seconds']} s {'; '.join(result['problems'])}", flush=True)
    return failed


def seeds_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=range(1, 1001), help="N or FIRST-LAST (default: 1-1000)")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS,
                        help="(default: build/drills/results.jsonl)")
    parser.add_argument("--summary", nargs="?", const="-", help="sums the file and runs nothing")
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    failed = 0 if options.summary else asyncio.run(run_all(options.seeds, options.results))
    text = json.dumps(summarize(list(read_results(options.results).values())), indent=1)
    if options.summary and options.summary != "-":
        pathlib.Path(options.summary).write_text(text + "\n")
    print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
