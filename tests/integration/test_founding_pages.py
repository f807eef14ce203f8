"""The pages for readers of the founding documents: every console block is run.

What it prints is compared with the page. `…` matches any text. The words after the fence:
    server      The block starts servers. Each runs until the next one or the end of the page. Its
                lines must come in this order; others may lie between.
    numbers     Numbers and columns may differ.
    shown       What the document itself prints. These lines must come in the output of the next
                console block.
    file NAME   Is written into the folder.
Commands run in a folder where `build` and `demo` are those of the repository, with free ports.
"""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

from penstock_testing import ADDRESS, BIN, REPOSITORY, Process

PAGES = ("migrate-from-seq-scheduler", "effective-batching", "migrate-from-tgi")
PORTS = re.compile(r"\b(?:8080|8500|3000)\b")
# deploy/serve-effective also builds; this is what it starts then.
SCRIPTS = {"deploy/serve-effective ": "penstock-launcher --model-id demo/model --static-grouping "
                                      "equal --host 0.0.0.0 --batching "}
FASTER = {"effective --numsamples 100": "effective --numsamples 100 --rate 100"}  # lasts 50 s


def blocks_of(page):
    """[(words after the fence, text)] of every fenced block."""
    text = (REPOSITORY / "docs" / f"{page}.md").read_text()
    fences = re.findall(r"^```(.+)\n((?:.*\n)*?)```$", text, re.M)
    return [(words.split(), body) for words, body in fences]


def commands_of(block):
    """[(command, expected output)]; a command goes on after a backslash or within quotes."""
    found = []
    lines = iter(block.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            found[-1][1].append(line)
            continue
        command = line[2:]
        while command.endswith("\\") or command.count("'") % 2:
            command += "\n" + next(lines)
        found.append((command, []))
    return found


def pattern_of(line, numbers):
    pieces = [re.escape(plain(piece, numbers)) for piece in line.split("…")]
    return re.compile(".*".join(pieces))


def plain(text, numbers):
    return re.sub(r"\s+", " ", re.sub(r"-?\d[\d.]*(e[+-]\d+)?", "0", text)) if numbers else text


def compare(command, expected, printed, numbers=False, gaps=False):
    """`gaps`: lines between the expected ones do not matter; so does a line `…` for its place."""
    rest = [plain(line, numbers).rstrip() for line in printed]
    skip = gaps
    for line in expected:
        if line.strip() == "…":
            skip = True
            continue
        pattern = pattern_of(line.rstrip(), numbers)
        while skip and rest and not pattern.fullmatch(rest[0]):
            rest.pop(0)
        assert rest and pattern.fullmatch(rest[0]), (
            f"$ {command}\nexpected: {line}\nprinted:  {rest[0] if rest else 'no more lines'}\n"
            "all:\n" + "\n".join(printed))
        rest.pop(0)
        skip = gaps
    assert skip or not rest, f"$ {command}\nis not on the page:\n" + "\n".join(rest)


class Folder:
    """Where the commands of one page run."""

    def __init__(self, path):
        self.path = path
        self.server = None
        self.address = None
        (path / "build").mkdir()
        (path / "build" / "bin").symlink_to(BIN)
        (path / "demo").symlink_to(REPOSITORY / "demo")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        self.env["PATH"] = f"{BIN}:{self.env['PATH']}"

    def start(self, command, expected):
        self.stop()
        for script, program in SCRIPTS.items():
            command = command.replace(script, program)
        *variables, program, rest = re.match(r"((?:\w+=\S+ )*)(\S+)(.*)", command).groups()
        env = dict(pair.split("=", 1) for pair in "".join(variables).split())
        self.server = Process(["bash", "-c", f"exec {program}{rest} --port 0"],
                              env={**self.env, **env}, cwd=self.path)
        port = self.server.wait_line(ADDRESS).group(2)
        self.server.wait_line("try it")
        self.address = port
        compare(command, [self.here(line) for line in expected], self.server.lines, gaps=True)

    def here(self, text):
        return PORTS.sub(self.address, text) if self.address else text

    def run(self, command, expected, numbers):
        for slow, fast in FASTER.items():
            command = command.replace(slow, fast)
        done = subprocess.run(["bash", "-c", self.here(command)], cwd=self.path, env=self.env,
                              capture_output=True, text=True, timeout=120)
        printed = done.stdout.rstrip("\n").splitlines()
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        compare(command, [self.here(line) for line in expected], printed, numbers)
        return printed

    def stop(self):
        if self.server:
            self.server.stop()


@pytest.mark.parametrize("page", PAGES)
def test_every_command_prints_what_the_page_says(page, tmp_path):
    if not shutil.which("curl"):
        pytest.skip("curl is absent")
    folder = Folder(tmp_path)
    shown = None
    count = 0
    try:
        for words, body in blocks_of(page):
            if "file" in words:
                (tmp_path / words[-1]).write_text(body)
            if words == ["text", "shown"]:
                shown = body.splitlines()
            if words[0] != "console":
                continue
            output = []
            for command, expected in commands_of(body):
                while expected and not expected[-1].strip():
                    expected.pop()
                count += 1
                if "server" in words:
                    folder.start(command, expected)
                else:
                    output += folder.run(command, expected, "numbers" in words)
            if shown:
                compare(body, [line for line in shown if line], output, gaps=True)
            shown = None
    finally:
        folder.stop()
    assert count >= 4, "the page has its commands"


PICTURES = sorted((REPOSITORY / "docs" / "images").glob("*.svg"))


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_pictures_of_the_documents_follow_the_dark_scheme(path):
    text = path.read_text()
    xml.etree.ElementTree.fromstring(text)
    assert "@media (prefers-color-scheme:dark)" in text
