#!/usr/bin/env python3
"""Prints a manual page (roff) made from a program's --help.

usage: manual.py PROGRAM VERSION
"""

import datetime
import os
import subprocess
import sys


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def help_of(program):
    name = os.path.basename(program)
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    lines = done.stdout.strip("\n").split("\n")
    usage = lines.pop(0).removeprefix("Usage: ").removeprefix("usage: ")
    while lines and lines[0].startswith("  "):  # more forms of the command
        usage += "\n" + lines.pop(0).strip()
    while lines and not lines[0]:
        lines.pop(0)
    purpose = []
    while lines and lines[0] and not lines[0].startswith((" ", "-")):
        purpose.append(lines.pop(0))
    text = " ".join(purpose) or "part of the Penstock model server"
    return name, usage, text, lines


def page(program, version):
    name, usage, purpose, lines = help_of(program)
    date = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    short = purpose.split(". ")[0].rstrip(".:")
    yield f'.TH {name.upper()} 1 "{date:%Y-%m-%d}" "Penstock {version}" "User Commands"'
    yield ".SH NAME"
    yield f"{escape(name)} \\- {escape(short[:1].lower() + short[1:])}"
    yield ".SH SYNOPSIS"
    yield ".nf"
    yield from map(escape, usage.split("\n"))
    yield ".fi"
    yield ".SH DESCRIPTION"
    yield escape(purpose)
    yield ".PP"
    yield ".nf"
    yield from map(escape, lines)
    yield ".fi"
    yield ".SH SEE ALSO"
    yield "The documents of Penstock: docs/README.md in its sources."


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    print("\n".join(page(sys.argv[1], sys.argv[2])))


if __name__ == "__main__":
    main()
