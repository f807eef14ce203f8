#!/usr/bin/env python3
"""Files and identifiers that comments and documents name exist.

usage: names.py [ROOT]

A file is named with its suffix (`batch_check.cc`, `router/engine.h`) or as a path below a folder of
the root (`tests/sim`). An identifier is a word of several CamelCase parts, a word with an
underscore, a member (`Class::Member`), or a call with nothing between its parentheses. It exists if
a source has it outside comments, possibly in a string. In documents only code blocks and words in
backticks are checked, and indented examples in comments may have local variables. An option that a
document names (`--name`) is one of a program or script of the repository. A decision record that is
named by its number exists.
"""

import io
import re
import sys
import tokenize
from pathlib import Path

from known_names import EXTERNAL, EXTERNAL_FILES
from option_names import options_of_code, unknown_options
from sources import CPP_SUFFIXES, blank, list_files, report, root_from

CODE = CPP_SUFFIXES + (".rs",)
HASH_SUFFIXES = (".cmake", ".sh", ".txt", ".toml", ".yml", ".yaml", "")
# History, and the planted names of the self-test.
SKIPPED_FILES = ("CHANGELOG.md", "tests/checks/test_checks.py", "tests/checks/known_names.py")
# Folders that are not in the repository.
BUILT = ("build", "bin", ".deps", ".venv")
MIME = re.compile(r"^text/(plain|html|event-stream|xml|css|x-)")

_FILE_SUFFIXES = r"(?:h|hpp|cc|cu|cuh|rs|py|proto|md|sh|cmake|toml)"
_FILE = re.compile(rf"(?<![\w./<{{$~-])[\w./-]*[\w}}]\.(?:{_FILE_SUFFIXES}|\{{h,cc\}})(?![\w/-])")
_CAMEL = r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|k[A-Z]\w+|[a-z]+(?:[A-Z][a-z0-9]+)+"
_SNAKE = r"[a-z]\w*_\w*|PENSTOCK_[A-Z0-9_]+"
_CALL = r"[A-Za-z_]\w*(?=\(\))"
_MEMBER = r"(?<=[a-z]::)[A-Z]\w+"
_IDENTIFIER = re.compile(
    rf"(?<![\w.$<{{/-])(?:{_CAMEL}|{_SNAKE}|{_CALL}|{_MEMBER})(?![\w*<{{/-]|\.\w)"
)
_ONE_LETTER = re.compile(r"[a-z]_[a-z]")  # a symbol with its index, as in a formula
_EXAMPLE = re.compile(r"\s*//[/!]?   +\S")  # an indented line of a comment: code or a table
_LOCAL = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
_OPTION = re.compile(r'"([a-z]+(?:-[a-z0-9]+)+)"')
_RECORD = re.compile(r"\b(?:[Dd]ecision|[Rr]ecord)s?(?: records?)? (\d{4})\b")
_SETTING = re.compile(r"^\s*(?!PENSTOCK_)[A-Z]\w*=")  # of a systemd unit or an environment
_SHELL_FUNCTION = re.compile(r"^\s+(\w+)\(\) \{", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z_]\w*")
_BACKTICKS = re.compile(r"`([^`]+)`")


def comments_of_code(text):
    """The text with everything but comments blanked out; lines stay where they are."""
    code = blank(text, keep_strings=True)
    return "".join("\n" if t == "\n" else " " if c != " " else t for t, c in zip(text, code))


def tokens_of_python(text):
    """(is it a comment or a docstring, token) for every token."""
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        first = previous in (tokenize.NEWLINE, tokenize.INDENT)
        yield token.type == tokenize.COMMENT or token.type == tokenize.STRING and first, token
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type


def comments_of_python(text):
    lines = [""] * (text.count("\n") + 2)
    for is_comment, token in tokens_of_python(text):
        if is_comment:
            for offset, line in enumerate(token.string.split("\n")):
                lines[token.start[0] - 1 + offset] += " " + line
    return "\n".join(lines)


_SCRIPT_COMMENT = re.compile(r"(?:^|(?<=\s))#(?![!{]).*$", re.MULTILINE)


def comments_of_script(text):
    return "\n".join(" ".join(_SCRIPT_COMMENT.findall(line)) for line in text.split("\n"))


def prose_of(path, text):
    """The comments of a source, or the text of a document."""
    if path.suffix == ".md":
        return text
    if path.suffix in (*CODE, ".proto"):
        return comments_of_code(text)
    if path.suffix == ".py":
        return comments_of_python(text)
    return comments_of_script(text)


def code_of(path, text):
    if path.suffix in (*CODE, ".proto"):
        return blank(text, keep_strings=True)
    if path.suffix == ".py":
        return " ".join(t.string for is_comment, t in tokens_of_python(text) if not is_comment)
    return _SCRIPT_COMMENT.sub("", text)


def document_words(text):
    """(line, text) of the lines of code blocks, and of what stands in backticks outside them.

    A command of several lines counts for its first line. Settings of other programs (`KEY=value`) and functions that
    the text of a shell defines are left out.
    """
    fenced, command = False, ""
    local = re.compile("|".join(rf"\b{name}\b" for name in _SHELL_FUNCTION.findall(text)) or r"(?!)")
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            first = first if command else number
            command += " " + local.sub(" ", _SETTING.sub(" ", line))
            if line.endswith(("\\", "|")):
                command = command.rstrip("\\")
                continue
            yield first, command.replace("\\n", " ")
            command = ""
        else:
            for quoted in _BACKTICKS.findall(line):
                yield number, quoted


def document_records(text):
    """(line, number) of the decision records that a document names anywhere."""
    for number, line in enumerate(text.split("\n"), 1):
        for record in _RECORD.findall(line):
            yield number, record


def named_files(text):
    for match in _FILE.finditer(text):
        name = match.group()
        if name.endswith(".{h,cc}"):
            yield from (name.removesuffix("{h,cc}") + end for end in ("h", "cc"))
        else:
            yield name


class Names:
    """What the repository defines."""

    def __init__(self, root, files):
        self.paths = {p.as_posix() for p in files}
        self.folders = {f.as_posix() for p in files for f in p.parents}
        self.tails = {"/".join(p.parts[i:]) for p in files for i in range(len(p.parts))}
        self.tops = {p.parts[0] for p in files if len(p.parts) > 1 and p.parts[0][0] != "."}
        self.records = {p.name[:4] for p in files if p.parent == Path("docs/decisions")}
        self.words = set(EXTERNAL) | {p.stem for p in files}
        self.options = set()
        for path in files:
            if path.suffix != ".md" and path.as_posix() not in SKIPPED_FILES:
                code = code_of(path, read(root / path))
                self._add_words(code)
                self.options |= options_of_code(path, code)

    def _add_words(self, code):
        self.words.update(_WORD.findall(code))
        for option in _OPTION.findall(code):
            key = option.replace("-", "_")
            self.words.update((key, "PENSTOCK_" + key.upper()))

    def has_file(self, name):
        name = name.removeprefix("./")
        return (
            name in self.tails
            or name.split("/")[0] in BUILT
            or name in EXTERNAL_FILES
            or name.endswith((".pb.h", ".pb.cc"))
            or name.startswith(("../", "/"))
        )

    def has_path(self, name):
        name = name.rstrip("/.")
        return (
            name in self.folders
            or name in self.tails
            or any(name + suffix in self.tails for suffix in (".h", ".cc", ".py", ".rs"))
            or (name.startswith("docs/decisions/") and name[-4:] in self.records)
            or bool(MIME.match(name))
        )

    def has_identifier(self, name):
        """Also the plural of a known name."""
        known = name in self.words or name.removesuffix("s") in self.words
        return known or bool(_ONE_LETTER.fullmatch(name))


def read(path):
    return path.read_text(errors="replace")


def problems_in(path, number, text, names):
    for name in named_files(text):
        if not names.has_file(name):
            yield f"{path}:{number}: there is no file {name}"
    tops = "|".join(map(re.escape, sorted(names.tops)))
    for match in re.finditer(rf"(?<![\w./<-])(?:{tops})/[\w./-]*\w(?![\w*{{<$-])", text):
        if not names.has_path(match.group()) and "." not in match.group():
            yield f"{path}:{number}: there is no {match.group()}"
    for number_of_record in _RECORD.findall(text):
        if number_of_record not in names.records:
            yield f"{path}:{number}: there is no decision {number_of_record}"
    is_example = bool(_EXAMPLE.match(text))
    for match in _IDENTIFIER.finditer(re.sub(r"https?://\S+", " ", text)):
        is_local = is_example and _LOCAL.fullmatch(match.group())
        if not is_local and not names.has_identifier(match.group()):
            yield f"{path}:{number}: no source defines {match.group()}"


def problems_in_document(path, text, names):
    for number, words in document_words(text):
        yield from problems_in(path, number, words, names)
        for option in unknown_options(words, names.options):
            yield f"{path}:{number}: no program has an option {option}"
    for number, record in document_records(text):
        if record not in names.records:
            yield f"{path}:{number}: there is no decision {record}"


def is_checked(path):
    if path.as_posix() in SKIPPED_FILES or path.parts[:2] == ("tests", "data"):
        return False
    suffixes = (*CODE, ".proto", ".py", ".md", *HASH_SUFFIXES)
    return path.suffix in suffixes and path.name not in ("LICENSE", "Cargo.lock")


def check(root):
    root = Path(root)
    files = [p for p in list_files(root) if (root / p).stat().st_size < 1_000_000]
    names = Names(root, files)
    problems, checked = [], [p for p in files if is_checked(p)]
    for path in checked:
        text = prose_of(path, read(root / path))
        if path.suffix == ".md":
            problems += problems_in_document(path, text, names)
            continue
        for number, line in enumerate(text.split("\n"), 1):
            problems += problems_in(path, number, line, names)
    return problems, f"what the prose of {len(checked)} files names exists"


if __name__ == "__main__":
    sys.exit(report("names", *check(root_from(sys.argv[1:]))))
