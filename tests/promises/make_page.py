#!/usr/bin/env python3
"""Writes docs/promises.md from promises.toml and the results of the last long runs.

usage: make_page.py [--check]     --check writes nothing and fails where the page would change

`tests/faults/drills.py --summary tests/promises/results/drills.json` and
`tests/fuzz/fuzz.py --summary tests/promises/results/fuzz.json` keep the results of long runs.
"""

import json
import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = "docs/promises.md"
HEAD = """# What is promised

Each promise has a number, a figure and the tests that fail when it is broken. "Last measured" is of
the last long run; without an entry the figure is what the tests assert on every change. P1 to P14
are general, R1 to R4 are about [lost replica groups](operations.md#replica-groups), and the
guarantees of the scheduler are on a [page of their own](scheduling-guarantees.md).

This page is made by `tests/promises/make_page.py`.
"""
TAIL = """
## How the long runs are made

* `make drills` runs a thousand drills. Each starts a server under load and injects one fault: a
  rank gets SIGKILL, SIGSTOP or SIGTERM, or a link is slow, cut, silent or passes single bytes.
  {drills_text}
* `make fuzz` runs each reader of foreign bytes under libFuzzer, AddressSanitizer and
  UndefinedBehaviorSanitizer. Every change reads the committed seeds again (`tests/fuzz/corpus`).

| run | commit | date | what |
|---|---|---|---|
"""
ROWS = {
    "drills": "{drills[drills]} drills of 32 streams: {kinds}",
    "fuzz": "{fuzz[targets]} targets, {fuzz[cpu_minutes]} CPU-minutes, {fuzz[executions]} inputs",
}
DRILLS_TEXT = """The seed draws the
  server (simulated shards or the demo model, one or two groups of one or two ranks), its 32
  requests, the fault and its moment. The verdict compares every token, log-probability and text
  with an undisturbed run, and looks for streams that hang and for blocks, files and processes that
  are left."""


def read_promises(root):
    return tomllib.loads((root / "tests/promises/promises.toml").read_text())["section"]


def read_results(root):
    folder = root / "tests/promises/results"
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def shown_test(test):
    path, _, name = test.partition("::")
    return f"[`{name}`](../{path})"


def write(root):
    results = read_results(root)
    lines = [HEAD]
    for section in read_promises(root):
        lines += [f"## {section['title']}\n", "| | Promise | Figure | Tests | Last measured |", "|---|---|---|---|---|"]
        for promise in section["promise"]:
            tests = "<br>".join(map(shown_test, promise["tests"]))
            measured = promise.get("measured", "").format(**results)
            lines.append(f"| {promise['id']} | {promise['promise']} | {promise['figure']} | {tests} | {measured} |")
        lines.append("")
    kinds = ", ".join(f"{count} {kind}" for kind, count in results["drills"]["by_fault"].items())
    page = "\n".join(lines).rstrip("\n") + "\n" + TAIL.format(drills_text=DRILLS_TEXT)
    for run, row in ROWS.items():
        if run in results:
            head = f"| {run} | {results[run]['commit']} | {results[run]['date']} | "
            page += head + row.format(kinds=kinds, **results) + " |\n"
    return page


def has_test(text, name):
    if "." in name:
        suite, _, case = name.partition(".")
        return re.search(rf"\bTEST(_F|_P)?\(\s*{suite},\s*{case}\s*\)", text) is not None
    return re.search(rf"^def {name}\(", text, re.MULTILINE) is not None


def problems(root):
    """What is wrong with the promises of a tree."""
    numbers = set()
    for section in read_promises(root):
        for promise in section["promise"]:
            if promise["id"] in numbers:
                yield f"tests/promises/promises.toml:1: {promise['id']} is given twice"
            numbers.add(promise["id"])
            if not promise["tests"]:
                yield f"tests/promises/promises.toml:1: {promise['id']} has no test"
            for test in promise["tests"]:
                path, _, name = test.partition("::")
                file = root / path
                if not file.is_file() or not has_test(file.read_text(), name):
                    yield f"tests/promises/promises.toml:1: {promise['id']} names a test that is not there: {test}"
    if not (root / PAGE).is_file() or (root / PAGE).read_text() != write(root):
        yield f"{PAGE}:1: is not what tests/promises/make_page.py writes"


def main():
    if "--check" not in sys.argv[1:]:
        (ROOT / PAGE).write_text(write(ROOT))
    found = list(problems(ROOT))
    print("\n".join(found) or f"{PAGE} is right")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
