"""Turns the JUnit file of penstock-gpu-tests into a table and results.json.

usage: summary.py FOLDER [--skipped REASON]
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def read_results(folder):
    """One entry per test: name, outcome, seconds, and why it was skipped or failed."""
    results = []
    for case in ElementTree.parse(folder / "gpu-tests.xml").getroot().iter("testcase"):
        failure, skipped = case.find("failure"), case.find("skipped")
        outcome = "failed" if failure is not None else "skipped" if skipped is not None else "passed"
        reason = failure if failure is not None else skipped
        message = "" if reason is None else (reason.get("message") or "").strip().splitlines()
        results.append(
            {
                "test": f"{case.get('classname')}.{case.get('name')}",
                "outcome": outcome,
                "seconds": float(case.get("time", 0)),
                "reason": message[-1] if message else "",
            }
        )
    return results


def main():
    folder = Path(sys.argv[1])
    if "--skipped" in sys.argv:
        names = [line.strip() for line in (folder / "list.txt").read_text().splitlines()]
        reason = sys.argv[sys.argv.index("--skipped") + 1]
        results = [{"test": n, "outcome": "skipped", "seconds": 0, "reason": reason} for n in names]
    else:
        results = read_results(folder)
    counts = {k: sum(r["outcome"] == k for r in results) for k in ("passed", "failed", "skipped")}
    (folder / "results.json").write_text(
        json.dumps({"counts": counts, "tests": results}, indent=1) + "\n"
    )
    for result in results:
        if result["outcome"] != "passed":
            print(f"{result['outcome']:8} {result['test']}: {result['reason']}")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
