"""Shared by all checks: the list of the repository's files, and C++ text without comments and literals."""

import re
import subprocess
import sys
from pathlib import Path

CPP_SUFFIXES = (".h", ".cc", ".cu", ".cuh", ".inc")
SKIPPED = 77  # exit status of a check that could not run; its last line says why


def repository_root():
    return Path(__file__).resolve().parents[2]


def list_files(root):
    """Tracked and new files, without ignored ones, relative to root and sorted; any tree will do for self-tests."""
    root = Path(root)
    return [p for p in _list_entries(root) if (root / p).is_file()]


def list_links(root):
    """Symbolic links among the tracked and new entries."""
    root = Path(root)
    return [p for p in _list_entries(root) if (root / p).is_symlink()]


def _list_entries(root):
    listing = subprocess.run(
        [
            "git",
            "-C",
            str(root),
            "-c",
            f"safe.directory={root}",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        names = listing.stdout.decode().split("\0")
        return sorted(Path(n) for n in names if n)
    return sorted(p.relative_to(root) for p in root.rglob("*"))


def list_cpp(root):
    return [p for p in list_files(root) if p.suffix in CPP_SUFFIXES]


_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"  # comments
    r'|R"([^()\\ ]{0,16})\(.*?\)\1"'  # raw strings
    r'|"(?:\\.|[^"\\\n])*"'  # strings
    r"|(?<![0-9A-Fa-f])'(?:\\.[^'\n]*|[^'\\\n])'",  # characters, not digit separators
    re.DOTALL,
)


def blank(text, keep_strings=False):
    """The same text with comments and literals blanked out; line breaks and columns stay where they are."""

    def replace(match):
        token = match.group(0)
        if keep_strings and not token.startswith(("//", "/*")):
            return token
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(replace, text)


def report(check, problems, summary):
    """Prints the problems, or one line of summary; returns the exit status."""
    for problem in problems:
        print(problem)
    print(f"{check}: {len(problems)} problems" if problems else f"{check}: {summary}")
    return 1 if problems else 0


def root_from(arguments):
    return Path(arguments[0]).resolve() if arguments else repository_root()


def skip(check, reason):
    print(f"{check}: skipped: {reason}")
    sys.exit(SKIPPED)
