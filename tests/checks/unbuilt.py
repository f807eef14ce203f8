#!/usr/bin/env python3
"""Every C++ source is listed in a CMakeLists.txt of its folder or one above: no dead files.

usage: unbuilt.py [ROOT]
"""

import sys
from pathlib import Path

from sources import list_files, report, root_from


def is_listed(path, lists):
    for folder in path.parents:
        words = lists.get(folder, "").split()
        name = path.relative_to(folder)
        # The second one is file(GLOB ... FOLDER/*.cc).
        if name.as_posix() in words or (name.parent / f"*{name.suffix}").as_posix() in words:
            return True
    return False


def check(root):
    files = list_files(root)
    lists = {
        p.parent: (root / p).read_text().replace("(", " ").replace(")", " ")
        for p in files
        if p.name == "CMakeLists.txt"
    }
    sources = [p for p in files if p.suffix in (".cc", ".cu")]
    problems = [
        f"{p}:1: in no CMakeLists.txt, so nothing builds it"
        for p in sources
        if not is_listed(p, lists)
    ]
    return problems, f"{len(sources)} sources are all built"


if __name__ == "__main__":
    sys.exit(report("unbuilt", *check(Path(root_from(sys.argv[1:])))))
