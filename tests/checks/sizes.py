#!/usr/bin/env python3
"""No file over 500 lines, no function over 70, no main.cc over 60, no nesting over 4; prints the distributions.

usage: sizes.py [ROOT]
"""

import sys
from pathlib import Path

from functions import functions_of
from sources import CPP_SUFFIXES, list_files, report, root_from

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
MAIN_LINES_MAX = 60
NESTING_MAX = 4
CHECKED = CPP_SUFFIXES + (".rs", ".py", ".proto", ".cmake")
WITH_FUNCTIONS = CPP_SUFFIXES + (".rs", ".py")


def percentile(values, share):
    ordered = sorted(values) or [0]
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def describe(values):
    return (
        "/".join(str(percentile(values, share)) for share in (0.5, 0.9, 0.99))
        + f"/{max(values, default=0)}"
    )


def file_problems(path, lines):
    if lines > FILE_LINES_MAX:
        yield f"{path}:1: {lines} lines, the limit of a file is {FILE_LINES_MAX}"
    if path.name == "main.cc" and lines > MAIN_LINES_MAX:
        yield f"{path}:1: {lines} lines, the limit of main.cc is {MAIN_LINES_MAX}: move the rest into a library"


def function_problems(path, functions):
    for function in functions:
        if function.lines > FUNCTION_LINES_MAX:
            yield (
                f"{path}:{function.line}: {function.name} has {function.lines} lines, "
                f"the limit of a function is {FUNCTION_LINES_MAX}"
            )
        if function.nesting > NESTING_MAX:
            yield f"{path}:{function.line}: {function.name} nests {function.nesting} deep, the limit is {NESTING_MAX}"


def check(root):
    problems, file_lines, function_lines = [], [], []
    source_lines = test_lines = 0
    for path in list_files(root):
        if path.suffix not in CHECKED:
            continue
        text = (root / path).read_text(errors="replace")
        lines = text.count("\n")
        problems += file_problems(path, lines)
        functions = functions_of(path, text) if path.suffix in WITH_FUNCTIONS else []
        problems += function_problems(path, functions)
        if path.parts[0] == "tests":
            test_lines += lines
        else:
            source_lines += lines
            file_lines.append(lines)
            function_lines += [f.lines for f in functions]
    summary = (
        f"median/p90/p99/max of {len(file_lines)} files {describe(file_lines)} lines, of {len(function_lines)} "
        f"functions {describe(function_lines)} lines; test ratio {test_lines / max(source_lines, 1):.2f}"
    )
    return problems, summary


if __name__ == "__main__":
    sys.exit(report("sizes", *check(Path(root_from(sys.argv[1:])))))
