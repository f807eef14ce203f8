#!/usr/bin/env python3
"""Counts the tests of every runner: JUnit files (ctest, pytest, checks) and the output of cargo test.

usage: summary.py RESULT_DIR [--last-line]

Prints failed and skipped tests with their reasons and one line per runner; writes summary.json beside the results.
With --last-line the closing line is exactly `N passed, N failed, N skipped`. Exits 1 if a test failed or none ran.
A runner that failed without naming a test leaves RUNNER.status with its exit status: it counts as one failure.
"""

import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

GTEST_SKIP = re.compile(r"Skipped\n(.*)")
CARGO_TEST = re.compile(r"^test (\S+) ?.*\.\.\. (ok|FAILED|ignored)(?:, (.*))?$", re.MULTILINE)
SHOWN_LINES = 12


@dataclass
class Tally:
    passed: int = 0
    failed: list = field(default_factory=list)  # (name, detail)
    skipped: list = field(default_factory=list)  # (name, reason)

    def total(self):
        return self.passed + len(self.failed) + len(self.skipped)


def skip_reason(case, skipped):
    output = case.findtext("system-out") or ""
    match = GTEST_SKIP.search(output)
    return (match.group(1) if match else skipped.get("message") or "").strip() or "no reason given"


def read_junit(path):
    tally = Tally()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        name = ".".join(dict.fromkeys(filter(None, (case.get("classname"), case.get("name")))))
        failures = case.findall("failure") + case.findall("error")
        skipped = case.find("skipped")
        if failures:
            detail = (
                case.findtext("system-out") or failures[0].text or failures[0].get("message") or ""
            )
            tally.failed.append((name, detail))
        elif skipped is not None:
            tally.skipped.append((name, skip_reason(case, skipped)))
        else:
            tally.passed += 1
    return tally


def read_cargo(path):
    tally = Tally()
    for name, result, reason in CARGO_TEST.findall(path.read_text(errors="replace")):
        if result == "ok":
            tally.passed += 1
        elif result == "ignored":
            tally.skipped.append((name, reason or "ignored"))
        else:
            tally.failed.append((name, ""))
    return tally


def read_all(folder):
    tallies = {p.stem: read_junit(p) for p in sorted(folder.glob("*.xml"))}
    tallies.update({p.stem: read_cargo(p) for p in sorted(folder.glob("cargo*.log"))})
    for path in sorted(folder.glob("*.status")):
        tally = tallies.setdefault(path.stem, Tally())
        status = int(path.read_text())
        if status != 0 and not tally.failed:
            tally.failed.append((path.stem, f"ended with status {status} and named no failed test"))
    return tallies


def print_details(tallies):
    for runner, tally in tallies.items():
        for name, reason in tally.skipped:
            print(f"skipped  {runner}: {name}: {reason}")
    for runner, tally in tallies.items():
        for name, detail in tally.failed:
            print(f"FAILED   {runner}: {name}")
            for line in detail.strip().splitlines()[-SHOWN_LINES:]:
                print(f"         {line}")


def main():
    folder = Path(sys.argv[1])
    tallies = read_all(folder)
    print_details(tallies)
    print(f"{'runner':20} {'passed':>8} {'failed':>8} {'skipped':>8}")
    rows = {}
    for runner, tally in tallies.items():
        rows[runner] = {
            "passed": tally.passed,
            "failed": len(tally.failed),
            "skipped": len(tally.skipped),
        }
        print(f"{runner:20} {tally.passed:8} {len(tally.failed):8} {len(tally.skipped):8}")
    total = {key: sum(row[key] for row in rows.values()) for key in ("passed", "failed", "skipped")}
    (folder / "summary.json").write_text(
        json.dumps({"total": total, "runners": rows}, indent=1) + "\n"
    )
    closing = f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped"
    print(closing if "--last-line" in sys.argv else f"all tests: {closing}")
    return 0 if total["failed"] == 0 and sum(total.values()) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
