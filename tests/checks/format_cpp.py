#!/usr/bin/env python3
"""C++ sources are as clang-format writes them (.clang-format in the root).

usage: format_cpp.py [--fix] [ROOT]
"""

import shutil
import subprocess
import sys
from pathlib import Path

from sources import list_cpp, report, root_from, skip


def check(root, fix=False):
    files = [str(p) for p in list_cpp(root)]
    if not files:
        return [], "no C++ sources"
    mode = ["-i"] if fix else ["--dry-run", "--Werror", "-ferror-limit=3"]
    done = subprocess.run(
        ["clang-format", "--style=file", *mode, *files],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    problems = [line for line in done.stderr.splitlines() if ": error:" in line]
    if done.returncode != 0 and not problems:
        problems = [done.stderr.strip()]
    return problems, f"{len(files)} files {'formatted' if fix else 'are in format'}"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--fix"]
    if not shutil.which("clang-format"):
        skip("format_cpp", "no clang-format; deploy/bootstrap --tests installs it")
    return report("format_cpp", *check(Path(root_from(arguments)), fix="--fix" in sys.argv))


if __name__ == "__main__":
    sys.exit(main())
