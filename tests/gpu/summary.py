"""Joins the results of tests/gpu/run in a folder: prints a table, writes results.json and junit.xml.

usage: summary.py FOLDER

Read: PIECE.json for each piece, a list of {test, outcome, seconds, reason}; an empty one is a piece that ended without
a result. Exits 1 if a test failed or none is there.
"""

import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PIECES = ("tests", "memcheck", "http", "decode", "serve", "load", "hf")


def read_all(folder):
    results = []
    for piece in PIECES:
        path = folder / f"{piece}.json"
        if path.exists():
            nothing = {
                "test": f"Piece.{piece}",
                "outcome": "failed",
                "seconds": 0,
                "reason": "ended without a result",
            }
            results += json.loads(path.read_text()) or [nothing]
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
