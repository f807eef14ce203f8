#!/usr/bin/env python3
"""Every promise of docs/promises.md names tests that exist, and the page is what its data say.

usage: promises.py [ROOT]
"""

import sys
from pathlib import Path

from sources import report, root_from

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "promises"))

import make_page  # noqa: E402


def check(root):
    root = Path(root)
    count = sum(len(section["promise"]) for section in make_page.read_promises(root))
    return list(make_page.problems(root)), f"{count} promises have their tests"


if __name__ == "__main__":
    sys.exit(report("promises", *check(root_from(sys.argv[1:]))))
