#!/usr/bin/env python3
"""Line rules: no sleeping, no loose ends, no machine's paths, 100 columns, header hygiene.

usage: rules.py [ROOT]
"""

import re
import sys
from pathlib import Path

from sources import CPP_SUFFIXES, blank, list_files, list_links, report, root_from

WIDTH_MAX = {".py": 120}  # others: 100
WIDE_SUFFIXES = CPP_SUFFIXES + (".rs", ".py")
TEXT_SUFFIXES = WIDE_SUFFIXES + (
    ".proto",
    ".cmake",
    ".sh",
    ".md",
    ".txt",
    ".json",
    ".yaml",
    ".yml",
    ".toml",
    ".cfg",
    "",
)
SELF = "tests/checks/"  # these files name what they forbid
# File -> why its sleep is right. Waiting is for events with a deadline; this list stays short.
SLEEP_ALLOWED = {
    "tests/unit/shard/parallel/shm_communicator_test.cc": "yields so that ranks drift apart",
    "tests/unit/router/dispatch/generation_service_test.cc": "asks for a record again; none is pushed",
    "tests/integration/test_rolling_restarts.py": "keeps the periods of the chart's probes, as a kubelet does",
}

SLEEP = {
    **dict.fromkeys(
        CPP_SUFFIXES,
        re.compile(
            r"\b(sleep_for|sleep_until|usleep|nanosleep|sleep|sched_yield)\s*\("
            r"|this_thread::yield\b"
        ),
    ),
    ".rs": re.compile(r"\bthread::(sleep|yield_now)\b"),
    ".py": re.compile(r"\btime\.sleep\(|\basyncio\.sleep\((?!0\))"),
    "": re.compile(r"^\s*sleep\s+[\d$.]"),
    ".sh": re.compile(r"^\s*sleep\s+[\d$.]"),
}
LOOSE_END = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.}])/(home|root|work|Users|mnt)/\w")
ABSL_TYPE = re.compile(r"\babsl::(string_view|optional)\b")


def code_problems(path, text):
    """Rules on code alone, comments and literals aside."""
    code = blank(text) if path.suffix in CPP_SUFFIXES + (".rs",) else text
    sleep = SLEEP.get(path.suffix)
    for number, line in enumerate(code.split("\n"), 1):
        if sleep and sleep.search(line) and path.as_posix() not in SLEEP_ALLOWED:
            yield f"{path}:{number}: sleeps or polls; wait for an event with a deadline"
        if path.suffix == ".h" and ABSL_TYPE.search(line):
            yield f"{path}:{number}: absl::string_view and absl::optional are not the std types on Debian 12"
        width = len(
            re.sub("  +", " ", line.strip()) if path.suffix in CPP_SUFFIXES else line.rstrip()
        )
        limit = WIDTH_MAX.get(path.suffix, 100)
        if path.suffix in WIDE_SUFFIXES and width > limit:  # a long literal may stand
            yield f"{path}:{number}: {width} columns, the limit is {limit}"


def text_problems(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if found := LOOSE_END.search(line):
            yield f"{path}:{number}: {found.group()} left in the text"
        if found := MACHINE_PATH.search(line):
            yield f"{path}:{number}: a path of one machine ({found.group()}...)"
    if path.suffix == ".h" and "#pragma once" not in text:
        yield f"{path}:1: no #pragma once"


def link_problems(root):
    """A link out of the tree is one machine's, and a checkout puts it over what lies there."""
    for path in list_links(root):
        target = (root / path).readlink()
        if target.is_absolute():
            yield f"{path}:1: a link to a path of one machine ({target})"


def is_checked(path):
    is_data = path.as_posix().startswith(("tests/data/", "demo/model/", "demo/data/"))
    return (
        path.suffix in TEXT_SUFFIXES and path.name not in ("LICENSE", "Cargo.lock") and not is_data
    )


def check(root):
    problems, count = list(link_problems(root)), 0
    for path in filter(is_checked, list_files(root)):
        text = (root / path).read_text(errors="replace")
        count += 1
        problems += code_problems(path, text)
        if not path.as_posix().startswith(SELF):
            problems += text_problems(path, text)
    return problems, f"{count} files keep the line rules"


if __name__ == "__main__":
    sys.exit(report("rules", *check(Path(root_from(sys.argv[1:])))))
