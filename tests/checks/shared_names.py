#!/usr/bin/env python3
"""Files that are compiled together do not share a name of an anonymous namespace. Tests are not checked.

usage: shared_names.py [ROOT]

penstock_unity (cmake/PenstockTargets.cmake) compiles files of a folder as one. A second definition of a
name is an error of the compiler, but an overload, or a name that hides one of an outer namespace, changes
the meaning of a neighbour without a word. Files after ALONE are compiled each by itself.
"""

import bisect
import re
import sys
from pathlib import Path

from classes import namespaces_of
from sources import blank, list_files, report, root_from

# A definition begins its line: a function, a constant or a type.
_DEFINITION = re.compile(
    r"^(?:(?:struct|class|enum class|enum) (\w+)"
    r"|(?!namespace\b|using\b)[A-Za-z_][^;{}()=\n]*?[\s&*](\w+)\s*(?:\(|\[|\{|=))",
    re.MULTILINE,
)
_KEYWORDS = {"if", "for", "while", "switch", "return", "void", "operator"}
_ALONE = re.compile(r"\bALONE\b([^()]*?)(?:\bDEPS\b|\))")


def alone_files(files, root):
    found = set()
    for path in files:
        if path.name == "CMakeLists.txt":
            text = re.sub(r"#[^\n]*", "", (root / path).read_text())
            for match in _ALONE.finditer(text):
                names = match.group(1).split()
                found |= {Path(*(path.parent / n).parts) for n in names if not n.startswith("$")}
    return {p.parent.joinpath(p.name) for p in found}


def definitions(text):
    """(name, namespaces around it, line) of what is defined or declared at the level of a namespace."""
    namespaces = namespaces_of(text)
    for match in _DEFINITION.finditer(text):
        index = bisect.bisect_right(namespaces, match.start(), key=lambda change: change[0]) - 1
        name = match.group(1) or match.group(2)
        if name not in _KEYWORDS:
            yield name, "::".join(namespaces[index][1]).strip(":"), text.count("\n", 0, match.start()) + 1


def anonymous(text):
    """name -> line of what is in anonymous namespaces."""
    found = {}
    namespaces = namespaces_of(text)
    for match in _DEFINITION.finditer(text):
        index = bisect.bisect_right(namespaces, match.start(), key=lambda change: change[0]) - 1
        name = match.group(1) or match.group(2)
        if "" in namespaces[index][1] and name not in _KEYWORDS:
            outer = "::".join(n for n in namespaces[index][1] if n)
            found.setdefault(name, (outer, text.count("\n", 0, match.start()) + 1))
    return found


def is_used(text, name):
    """Without a qualification: after a dot, an arrow or two colons it is another thing's member."""
    return re.search(rf"(?<![\w.:>]){name}\b(?!\s*::)", text)


def meet(first, second):
    """Whether one of two namespaces is the other, or lies in it."""
    return f"{first}::".startswith(f"{second}::") or f"{second}::".startswith(f"{first}::")


def check(root):
    files = list_files(root)
    alone = alone_files(files, root)
    folders, outer = {}, {}
    for path in files:
        if path.suffix == ".h" and path.parts[0] != "tests":
            for name, around, _ in definitions(blank((root / path).read_text(errors="replace"))):
                outer.setdefault(name, {}).setdefault(around, path)
        if path.suffix == ".cc" and path.parts[0] not in ("docs", "tests") and path not in alone:
            folders.setdefault(path.parent, {})[path] = blank((root / path).read_text(errors="replace"))
    problems = []
    for sources in folders.values():
        own = {path: anonymous(text) for path, text in sources.items()}
        for path, names in own.items():
            for name, (around, line) in names.items():
                hidden = [p for o, p in outer.get(name, {}).items() if around.startswith(o + "::")]
                for other in sources:
                    if other > path and name in own[other] and meet(around, own[other][name][0]):
                        problems.append(f"{path}:{line}: {name} is also defined in {other}")
                    elif other != path and hidden and is_used(sources[other], name):
                        problems.append(f"{path}:{line}: {name} hides that of {hidden[0]} in {other}")
    return problems, f"{sum(map(len, folders.values()))} sources, no name shared"


if __name__ == "__main__":
    sys.exit(report("shared names", *check(root_from(sys.argv[1:]))))
