"""Runs the acceptance tests of the founding papers and prints JSON.

usage: papers.py [--only N[,N]] [--write]

--write makes docs/benchmarks/papers.md. Exit code 1 when a threshold is missed.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time

from cases import CASES
from replay import REPOSITORY, TRACES

DOCUMENT = REPOSITORY / "docs/benchmarks/papers.md"
HEAD = "# Claims of the founding papers\n\nMade by `make bench-papers ARGS=--write`. Do not edit.\n\n"


def run(number):
    case = CASES[number]
    start = time.monotonic()
    try:
        rows = case()
    except (subprocess.CalledProcessError, json.JSONDecodeError) as error:
        rows = [{"what": f"not measured: {error}", "value": 0, "unit": "", "pass": "a result", "ok": False}]
    seconds = time.monotonic() - start
    print(f"{number:3} {seconds:6.1f} s {'ok' if all(r['ok'] for r in rows) else 'MISSED'}", file=sys.stderr)
    return {"test": number, "title": case.__doc__.strip(), "seconds": seconds, "rows": rows}


def cpu():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def show(value):
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if value < 100 else f"{value:,.0f}"


def table(report):
    lines = [f"Measured {report['date']} on {report['machine']}.", ""]
    lines += ["| Test | Measured | Result | Pass | |", "|---|---|---|---|---|"]
    for test in report["tests"]:
        title = f"**{test['test']}** {test['title']}"
        for entry in test["rows"]:
            mark = "" if not entry["pass"] else "yes" if entry["ok"] else "**no**"
            value = f"{show(entry['value'])} {entry['unit']}".strip()
            lines.append(f"| {title} | {entry['what']} | {value} | {entry['pass']} | {mark} |")
            title = ""
    return "\n".join(lines)


def write(report):
    DOCUMENT.write_text(f"{HEAD}{table(report)}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default=",".join(map(str, CASES)))
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if not TRACES.is_dir():
        sys.exit("the public traces are absent: set PENSTOCK_SHARED_DATA to the folder that holds traces/")
    report = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{cpu()}, {os.cpu_count()} cores",
        "tests": [run(int(number)) for number in arguments.only.split(",")],
    }
    print(json.dumps(report, indent=1))
    if arguments.write:
        write(report)
    return 0 if all(entry["ok"] for test in report["tests"] for entry in test["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
