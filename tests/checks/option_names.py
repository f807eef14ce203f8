"""Options of command lines: those that the programs and scripts of the repository take, and those that a text names.

A text names an option as `--name`. In a command of another program (`curl --cacert ca.pem`) options are not checked:
EXTERNAL_PROGRAMS lists these programs, and EXTERNAL_OPTIONS the options that prose names without a command.
"""

import re

from known_names import EXTERNAL_OPTIONS, EXTERNAL_PROGRAMS
from sources import CPP_SUFFIXES

_NAMED = re.compile(r"(?<![\w.*-])--([a-z][a-z0-9-]*[a-z0-9])(?![\w*<-])")
_STRING = re.compile(r'"(?:--)?([a-z][a-z0-9-]*(?: [a-z][a-z0-9-]*)*)"')
_PYTHON = re.compile(r'(?:add_?(?:argument|option) *\( *"--([a-z][a-z0-9-]*)"|"--([a-z][a-z0-9-]*)" in\b)')
_SHELL = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)(?=\)| \|)")
_SHELL_SUFFIXES = ("", ".sh")
_SEPARATOR = re.compile(r"\|\|?|&&|;|\$\(")
_BEFORE_COMMAND = re.compile(r"^(?:[#$>]\s|sudo |exec |\w+=\S*\s)")


def options_of_code(path, code):
    """What a source offers: the rows of a table, arguments of argparse, labels of a shell's case."""
    if path.suffix in CPP_SUFFIXES:
        has_table = "OptionSpec" in code or "options" in path.as_posix() or path.stem.endswith("main")
        found = _STRING.findall(code) if has_table else []
        return {word for literal in found for word in literal.split()}
    if path.suffix == ".py":
        return {first or second for first, second in _PYTHON.findall(code)}
    return set(_SHELL.findall(code)) if path.suffix in _SHELL_SUFFIXES else set()


def is_foreign(command):
    command = command.strip()
    while match := _BEFORE_COMMAND.match(command):
        command = command[match.end() :].lstrip()
    words = command.split()
    return bool(words) and words[0].rpartition("/")[2] in EXTERNAL_PROGRAMS


def unknown_options(text, known):
    """The options that commands of this repository, or prose, name and no program takes."""
    for command in _SEPARATOR.split(text):
        if is_foreign(command):
            continue
        for name in _NAMED.findall(command):
            if not {name, name.removeprefix("no-")} & (known | EXTERNAL_OPTIONS):
                yield "--" + name
