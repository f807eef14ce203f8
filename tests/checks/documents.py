#!/usr/bin/env python3
"""The form of the documents: width, links, CHANGELOG, the benchmarks page, decision records.

usage: documents.py [ROOT]
"""

import itertools
import re
import subprocess
import sys
from pathlib import Path

from sources import list_files, report, root_from

WIDTH_MAX = 100
CHANGELOG_LINES_MAX = 120
ENTRY_LINES_MAX = 2
BENCHMARKS_LINES_MAX = 150
TITLE_WORDS_MIN = 3
RECORDS = Path("docs/decisions")

_LINK = re.compile(r"\[([^\]]*)\]\(([^()\s]+)\)")
_ALONE = re.compile(r"^\s*(?:[-*>] |\d+\. )?(?:\[[^\]]*\]\([^)]*\)|\S+)[.,;:]?$")
_TITLE = re.compile(r"# (\d{4}) (.+)")


def prose_lines(text):
    """(number, line) of every line outside code blocks."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def width_problems(path, text):
    for number, line in prose_lines(text):
        exempt = line.lstrip().startswith("|") or _ALONE.match(line)
        if len(line) > WIDTH_MAX and not exempt:
            yield f"{path}:{number}: {len(line)} columns, the limit of a document is {WIDTH_MAX}"


def slug(title):
    """The anchor that Markdown makes of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def anchors_of(text):
    return {slug(line.lstrip("#")) for _, line in prose_lines(text) if line.startswith("#")}


def link_problems(path, text, root):
    for number, line in prose_lines(text):
        for _, target in _LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = root / path.parent / name if name else root / path
            if not file.exists():
                yield f"{path}:{number}: dead link {target}"
            elif anchor and file.suffix == ".md" and anchor not in anchors_of(file.read_text()):
                yield f"{path}:{number}: {name or path} has no heading {anchor}"


def changelog_problems(path, text):
    lines = text.rstrip("\n").split("\n")
    versions = [number for number, line in enumerate(lines) if line.startswith("## ")]
    for begin, end in itertools.pairwise([0, *versions, len(lines)]):
        if end - begin > CHANGELOG_LINES_MAX:
            yield (
                f"{path}:{begin + 1}: {end - begin} lines of a version, "
                f"the limit is {CHANGELOG_LINES_MAX}"
            )
    start = 0
    for number, line in enumerate([*lines, ""], 1):
        if not line.startswith(" "):
            if start and number - start > ENTRY_LINES_MAX:
                yield (
                    f"{path}:{start}: an entry of {number - start} lines, "
                    f"the limit is {ENTRY_LINES_MAX}"
                )
            start = number if re.match(r"[-*] ", line) else 0


def is_in_history(root, commit):
    """True also without the whole history, as in a tarball or a shallow clone."""
    shallow = subprocess.run(
        ["git", "-C", root, "rev-parse", "--is-shallow-repository"],
        capture_output=True,
        text=True,
        check=False,
    )
    if shallow.stdout.strip() != "false":
        return True
    contains = ["git", "-C", root, "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(contains, capture_output=True, check=False).returncode == 0


def benchmark_problems(path, text, root):
    """A figure names the commit that recorded it, one for each machine."""
    if text.count("\n") > BENCHMARKS_LINES_MAX:
        yield f"{path}:1: {text.count(chr(10))} lines, the limit is {BENCHMARKS_LINES_MAX}"
    header = []
    for number, line in prose_lines(text):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line[:1] == "|" else []
        if not cells or "commit" in cells:
            header = cells
        elif "commit" in header and set(line) - set("|-: "):
            row = dict(zip(header, cells, strict=False))
            commits = row.get("commit", "").split("; ")
            if len(commits) != len(row.get("machine", "").split("; ")):
                yield f"{path}:{number}: not one commit for each machine"
            for commit in commits:
                if not re.fullmatch(r"[0-9a-f]{7}", commit):
                    yield f"{path}:{number}: '{commit}' is no commit of seven digits"
                elif not is_in_history(root, commit):
                    yield f"{path}:{number}: commit {commit} is not in the history"


def record_problems(root, records):
    """Each record has a number, a title that its file name repeats, and a line in the index."""
    index = root / RECORDS / "README.md"
    listed = dict((t, n) for n, t in _LINK.findall(index.read_text())) if index.exists() else {}
    for path in records:
        title = _TITLE.fullmatch((root / path).read_text().split("\n")[0])
        if not title:
            yield f"{path}:1: the first line of a record is '# NNNN What was decided'"
            continue
        number, words = title.groups()
        if len(words.split()) < TITLE_WORDS_MIN:
            yield f"{path}:1: the title '{words}' does not say what was decided"
        if path.stem != f"{number}-{slug(words)}":
            yield f"{path}:1: the file name of this title is {number}-{slug(words)}.md"
        if listed.get(path.name) != f"{number} {words}":
            yield f"{path}:1: {RECORDS}/README.md does not list '{number} {words}'"


def check(root):
    root = Path(root)
    files = [p for p in list_files(root) if p.suffix == ".md"]
    problems = []
    for path in files:
        text = (root / path).read_text()
        problems += [*width_problems(path, text), *link_problems(path, text, root)]
        if path.name == "CHANGELOG.md":
            problems += changelog_problems(path, text)
        if path.as_posix() == "docs/benchmarks.md":
            problems += benchmark_problems(path, text, root)
    records = [p for p in files if p.parent == RECORDS and p.name != "README.md"]
    problems += record_problems(root, records)
    return problems, f"{len(files)} documents, {len(records)} decision records"


if __name__ == "__main__":
    sys.exit(report("documents", *check(root_from(sys.argv[1:]))))
