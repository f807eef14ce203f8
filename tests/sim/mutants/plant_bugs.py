#!/usr/bin/env python3
"""Plants bugs in a copy of scheduler/, for the tests of the simulator's checker.

usage: plant_bugs.py SCHEDULER_FOLDER OUTPUT_FOLDER TABLE...

Each table lists bugs:

    [[bug]]
    name = "last-block-leaks"
    breaks = "G1"                     the guarantee (docs/scheduling-guarantees.md)
    file = "kv/block_table.cc"        below scheduler/
    before = 'blocks_.rbegin()'       occurs once in the file; white space may differ
    after = 'blocks_.rbegin() + BUG'  BUG is true while this bug is switched on

All bugs are planted in one copy, and a test switches one of them on (switch.h). Texts of two bugs
must not overlap. Writes the copy and a list of the bugs to OUTPUT_FOLDER, and touches only
the files whose contents change. A bug that no longer applies is an error.
"""

import re
import sys
import tomllib
from pathlib import Path

SWITCH_HEADER = "tests/sim/mutants/switch.h"


class BadBug(Exception):
    """One line that names the bug and what is wrong with it."""


def read_bugs(tables):
    bugs = []
    for table in tables:
        for bug in tomllib.loads(Path(table).read_text())["bug"]:
            bugs.append({**bug, "table": Path(table).name})
    names = [bug["name"] for bug in bugs]
    for bug in bugs:
        if names.count(bug["name"]) > 1:
            raise BadBug(f"{bug['table']}: {bug['name']}: two bugs have this name")
        if not re.search(r"\bBUG\b", bug["after"]):
            raise BadBug(f"{bug['table']}: {bug['name']}: `after` never asks for BUG")
        if not re.fullmatch(r"G([1-9]|1[01])|model", bug.get("breaks", "")):
            raise BadBug(f"{bug['table']}: {bug['name']}: `breaks` names no guarantee (G1 to G11, model)")
    return bugs


def find_once(text, bug):
    pattern = r"\s+".join(re.escape(word) for word in bug["before"].split())
    matches = list(re.finditer(pattern, text))
    if len(matches) != 1:
        raise BadBug(
            f"{bug['table']}: {bug['name']} does not apply: its `before` occurs {len(matches)} times"
            f" in scheduler/{bug['file']}, not once"
        )
    return matches[0].span()


def plant(text, bugs):
    """The text of one file with all its bugs."""
    edits = []
    for bug in bugs:
        begin, end = find_once(text, bug)
        switch = f'PENSTOCK_MUTANT("{bug["name"]}")'
        edits.append((begin, end, re.sub(r"\bBUG\b", switch, bug["after"].strip()), bug))
    edits.sort(key=lambda edit: edit[0])
    for (_, end, _, bug), (begin, _, _, other) in zip(edits, edits[1:]):
        if begin < end:
            raise BadBug(f"{bug['table']}: {bug['name']} overlaps {other['name']}")
    for begin, end, after, _ in reversed(edits):
        text = text[:begin] + after + text[end:]
    return f'#include "{SWITCH_HEADER}"\n{text}' if bugs else text


def mutant_list(bugs):
    rows = "".join(f'    {{"{bug["name"]}", "{bug["breaks"]}"}},\n' for bug in bugs)
    return (
        '#include "tests/sim/mutants/mutants.h"\n\n'
        "namespace penstock::sim {\n\n"
        "std::span<const Mutant> AllMutants() {\n"
        f"  static constexpr Mutant kMutants[] = {{\n{rows}  }};\n"
        "  return kMutants;\n}\n\n"
        "}  // namespace penstock::sim\n"
    )


def write(path, text):
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main(scheduler, output, tables):
    scheduler, output = Path(scheduler), Path(output)
    bugs = read_bugs(tables)
    files = sorted(p.relative_to(scheduler) for p in scheduler.rglob("*") if p.suffix in (".h", ".cc"))
    for bug in bugs:
        if Path(bug["file"]) not in files:
            raise BadBug(f"{bug['table']}: {bug['name']}: scheduler/{bug['file']} does not exist")
    for file in files:
        planted = [bug for bug in bugs if bug["file"] == file.as_posix()]
        write(output / "scheduler" / file, plant((scheduler / file).read_text(), planted))
    write(output / "mutant_list.cc", mutant_list(bugs))


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
    except BadBug as error:
        sys.exit(f"planted bugs: {error}")
