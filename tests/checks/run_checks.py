#!/usr/bin/env python3
"""Runs every check of this folder, each as one test, with its time.

usage: run_checks.py [--junit FILE]     check
       run_checks.py --fix              let the formatters rewrite the sources instead
"""

import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

from sources import SKIPPED

HERE = Path(__file__).resolve().parent
# Colours and control characters, which XML does not allow.
CONTROL = re.compile(r"\x1b[^a-zA-Z]*[a-zA-Z]|[\x00-\x08\x0b-\x1f]")

CHECKS = {
    "layering": ["layering.py"],
    "sizes": ["sizes.py"],
    "rules": ["rules.py"],
    "unbuilt": ["unbuilt.py"],
    "classes": ["classes.py"],
    "names": ["names.py"],
    "shared names": ["shared_names.py"],
    "documents": ["documents.py"],
    "promises": ["promises.py"],
    "format_cpp": ["format_cpp.py"],
    "rust fmt": ["rust.py", "fmt"],
    "rust clippy": ["rust.py", "clippy"],
}
FIXES = {"format_cpp": ["format_cpp.py", "--fix"], "rust fmt": ["rust.py", "fmt-fix"]}


def run(name, command, suite):
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, str(HERE / command[0]), *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - start
    output = CONTROL.sub("", done.stdout + done.stderr).strip()
    case = ElementTree.SubElement(
        suite, "testcase", classname="checks", name=name, time=f"{seconds:.2f}"
    )
    if done.returncode == SKIPPED:
        ElementTree.SubElement(case, "skipped", message=output.splitlines()[-1])
    elif done.returncode != 0:
        ElementTree.SubElement(case, "failure", message=f"{name} failed").text = output
    word = {0: "ok", SKIPPED: "skip"}.get(done.returncode, "FAIL")
    print(f"{word:4} {name} ({seconds:.1f} s)\n     " + output.replace("\n", "\n     "), flush=True)
    return done.returncode in (0, SKIPPED)


def main():
    arguments = sys.argv[1:]
    suite = ElementTree.Element("testsuite", name="checks")
    chosen = FIXES if "--fix" in arguments else CHECKS
    results = [run(name, command, suite) for name, command in chosen.items()]
    if "--junit" in arguments:
        path = Path(arguments[arguments.index("--junit") + 1])
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(path)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
