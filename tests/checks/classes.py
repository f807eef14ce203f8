#!/usr/bin/env python3
"""A class is defined in one source file, and no planted bug is in the product.

usage: classes.py [ROOT]

The methods of one class may not be defined in two sources (.cc, .cu or .inc files). A nested class
counts for itself, so `Scheduler::Impl` may be defined beside `Scheduler`. Headers, and thus
templates, are not checked.
"""

import bisect
import re
import sys

from functions import cpp_functions
from sources import CPP_SUFFIXES, blank, list_files, report, root_from

_METHOD = re.compile(
    r"((?:\b[a-z]\w*\s*::\s*)*)((?:\b[A-Z]\w*(?:<[^<>()]*>)?\s*::\s*)+)"
    r"(?:~?\w+|operator\s*(?:\(\)|[^\s\w(]+|\w+))\s*\("
)
_DEFAULTED = re.compile(r"(?:^|(?<=[;{}]))[^;{}()]*\([^;{}]*\)\s*(?:noexcept\s*)?=\s*default;", re.MULTILINE)
MUTANT = re.compile(r"\bPENSTOCK_MUTANT\b")


def namespaces_of(text):
    """(position, the namespaces from there on) wherever they change; "" is an unnamed one."""
    stack, depth, changes = [], 0, [(0, ())]
    for match in re.finditer(r"\bnamespace\s*([\w:]*)\s*\{|[{}]", text):
        if match.group().startswith("namespace"):
            stack.append((match.group(1), depth))
        depth += -1 if match.group() == "}" else 1
        if match.group() == "}" and stack and stack[-1][1] == depth:
            stack.pop()
        elif not match.group().startswith("namespace"):
            continue
        changes.append((match.end(), tuple(name for name, _ in stack)))
    return changes


def methods_of(source):
    """(class with its namespace, line) of every method that is defined outside its class."""
    text = blank(source)
    namespaces = namespaces_of(text)
    heads = [(function.head, function.start) for function in cpp_functions(source)]
    heads += [(match.group(), match.start()) for match in _DEFAULTED.finditer(text)]
    for head, start in heads:
        match = _METHOD.search(head)
        index = bisect.bisect_right(namespaces, start, key=lambda change: change[0]) - 1
        inside = namespaces[index][1]
        if match and "" not in inside:
            outer, name = (
                re.sub(r"<[^<>]*>|\s", "", text).removesuffix("::") for text in match.groups()
            )
            # A qualified name begins at the root, or inside the namespaces around it.
            around = [] if outer.startswith("penstock") else inside
            line = text.count("\n", 0, start + match.start()) + 1
            yield "::".join([*around, *([outer] if outer else []), name]), line


def class_problems(sources):
    homes = {}
    for path, text in sources.items():
        for name, line in methods_of(text):
            homes.setdefault(name, {}).setdefault(path, line)
    for name, places in sorted(homes.items()):
        first, *others = places
        for path in others:
            yield f"{path}:{places[path]}: {name} is also defined in {first}"


def mutant_problems(root, files):
    for path in files:
        if path.parts[0] != "tests" and path.suffix in CPP_SUFFIXES:
            for number, line in enumerate((root / path).read_text(errors="replace").split("\n"), 1):
                if MUTANT.search(line):
                    yield f"{path}:{number}: planted bugs belong into tests/sim/mutants"


def check(root):
    files = list_files(root)
    sources = {
        p: (root / p).read_text(errors="replace") for p in files if p.suffix in (".cc", ".cu", ".inc")
    }
    problems = [*class_problems(sources), *mutant_problems(root, files)]
    return problems, f"{len(sources)} sources, each class in one"


if __name__ == "__main__":
    sys.exit(report("classes", *check(root_from(sys.argv[1:]))))
