"""Measures the CPU shard alone, against llama.cpp and over HTTP, and prints JSON.

usage: cpu_claims.py [--quick] [--only PIECE[,PIECE]] [--results FILE] [--write] [--list]

Each piece is measured alone and kept in the results file (build/cpu-bench.json), so that a long run can be divided.
--write makes docs/benchmarks/cpu.md and its picture from all kept results. Exit code 1 if a goal is missed or a
piece could not be measured; a skip does not pass.
"""

import argparse
import datetime
import json
import pathlib
import sys
import time

import programs
import report
from pieces import PIECES, QUICK

RESULTS = programs.BUILD / "cpu-bench.json"


def measure(name, quick):
    begin = time.monotonic()
    others = programs.Others()
    try:
        result = PIECES[name](quick)
    except programs.Missing as missing:
        result = {"skipped": str(missing)}
    seconds = time.monotonic() - begin
    share = others.share()
    print(f"{name:22} {seconds:6.1f} s, others {share * 100:.0f} % {result.get('skipped', '')}", file=sys.stderr)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes")
    facts = {"measured": now, "seconds": seconds, "others_share": share, "quick": quick}
    return {**result, **facts, "machine": programs.machine()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest shape, short")
    parser.add_argument("--only", help="pieces, separated by commas; prefixes will do")
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(PIECES))
        return 0
    wanted = list(QUICK if arguments.quick else PIECES)
    if arguments.only is not None:
        prefixes = [p for p in arguments.only.split(",") if p]
        wanted = [name for name in PIECES if any(name.startswith(p) for p in prefixes)]
    results = json.loads(arguments.results.read_text()) if arguments.results.exists() else {}
    for name in wanted:
        results[name] = measure(name, arguments.quick)
        arguments.results.write_text(json.dumps(results, indent=1) + "\n")
    goals = report.goals(results)
    shown = {name: results[name] for name in wanted}
    print(json.dumps({"pieces": shown, "goals": goals}, indent=1))
    if arguments.write:
        report.write(results)
    skipped = any("skipped" in result for result in shown.values())
    return 1 if skipped or any(not goal["ok"] for goal in goals) else 0


if __name__ == "__main__":
    sys.exit(main())
