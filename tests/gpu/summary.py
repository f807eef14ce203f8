"""Joins what tests/gpu/run left in a folder: prints a table, writes results.json and junit.xml.

usage: summary.py FOLDER

Read: gpu-tests.xml, or list.txt and skipped.txt if the program could not start; memcheck.status; http.json and
bench.json, lists of {test, outcome, seconds, reason}. Exits 1 if a test failed or none is there.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def read_gtest(path):
    results = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        failure, skipped = case.find("failure"), case.find("skipped")
        outcome = "failed" if failure is not None else "skipped" if skipped is not None else "passed"
        told = failure if failure is not None else skipped
        lines = "" if told is None else (told.get("message") or "").strip().splitlines()
        results.append(
            {
                "test": f"{case.get('classname')}.{case.get('name')}",
                "outcome": outcome,
                "seconds": float(case.get("time", 0)),
                "reason": lines[-1] if lines else "",
            }
        )
    return results


def read_listed(folder):
    reason = (folder / "skipped.txt").read_text().strip()
    results, suite = [], ""
    for line in (folder / "list.txt").read_text().splitlines():
        if not line.startswith(" "):
            suite = line.split("#")[0].strip()
            if suite.endswith("."):
                continue
            name = suite
        else:
            name = suite + line.split("#")[0].strip()
        results.append({"test": name, "outcome": "skipped", "seconds": 0, "reason": reason})
    return results


def read_all(folder):
    if (folder / "skipped.txt").exists():
        results = read_listed(folder)
    elif (folder / "gpu-tests.xml").exists():
        results = read_gtest(folder / "gpu-tests.xml")
    else:
        results = [
            {"test": "gpu-tests", "outcome": "failed", "seconds": 0, "reason": "ended without a result"}
        ]
    outcome, _, reason = (folder / "memcheck.status").read_text().strip().partition(" ")
    results.append({"test": "memcheck", "outcome": outcome, "seconds": 0, "reason": reason})
    for name in ("http.json", "bench.json"):
        if (folder / name).exists():
            results += json.loads((folder / name).read_text())
    return results


def write_junit(results, path):
    suite = ElementTree.Element("testsuite", name="gpu")
    for result in results:
        suite_name, _, name = result["test"].rpartition(".")
        case = ElementTree.SubElement(
            suite, "testcase", classname=suite_name, name=name, time=str(result["seconds"])
        )
        if result["outcome"] == "failed":
            ElementTree.SubElement(case, "failure", message=result["reason"])
        elif result["outcome"] == "skipped":
            ElementTree.SubElement(case, "skipped", message=result["reason"])
    ElementTree.ElementTree(suite).write(path, encoding="unicode")


def main():
    folder = Path(sys.argv[1])
    results = read_all(folder)
    counts = {k: sum(r["outcome"] == k for r in results) for k in ("passed", "failed", "skipped")}
    (folder / "results.json").write_text(
        json.dumps({"counts": counts, "tests": results}, indent=1) + "\n"
    )
    write_junit(results, folder / "junit.xml")
    for result in results:
        line = f"{result['outcome']:8} {result['seconds']:8.2f} s  {result['test']}"
        print(f"{line}: {result['reason']}" if result["reason"] else line)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["failed"] or not results else 0


if __name__ == "__main__":
    sys.exit(main())
