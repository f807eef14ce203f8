#!/usr/bin/env python3
"""Writes a Python wheel that holds Penstock's programs. Needs no network; two runs write the same bytes.

usage: wheel.py TREE FOLDER VERSION

TREE: the folder that deploy/bundle fills. FOLDER: where the wheel goes; its path is printed.
SOURCE_DATE_EPOCH: date of the files.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
LICENCE = HERE.parents[1] / "LICENSE"
ENTRY_POINTS = """\
[console_scripts]
penstock = penstock.programs:penstock
penstock-bench = penstock.programs:bench
penstock-launcher = penstock.programs:launcher
text-generation-launcher = penstock.programs:tgi_launcher
"""
LEFT_OUT = ("share/man/", "share/bash-completion/", "share/zsh/", "share/fish/")


def platform_tag():
    """The programs need a C library that is at least as new as this system's."""
    major, minor = os.confstr("CS_GNU_LIBC_VERSION").split()[1].split(".")[:2]
    return f"py3-none-manylinux_{major}_{minor}_x86_64"


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: penstock
Version: {version}
Summary: Server for Hugging Face language models
License: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.8
Description-Content-Type: text/markdown

Penstock serves Hugging Face causal language models over HTTP. The wheel holds its programs, which
need no Python; `penstock serve MODEL` starts them.
"""


class Wheel:
    """Adds files to a wheel and keeps their hashes for RECORD."""

    def __init__(self, path, information):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self._date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
        self._information = information
        self._records = []

    def add(self, name, data, executable=False):
        data = data.encode() if isinstance(data, str) else data
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self._records.append(f"{name},sha256={digest},{len(data)}")
        self._write(name, data, 0o755 if executable else 0o644)

    def add_information(self, name, data):
        self.add(f"{self._information}/{name}", data)

    def close(self):
        name = f"{self._information}/RECORD"
        self._write(name, "\n".join([*self._records, f"{name},,", ""]).encode(), 0o644)
        self._zip.close()

    def _write(self, name, data, mode):
        info = zipfile.ZipInfo(name, self._date)
        info.create_system = 3  # modes are Unix's
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data, compresslevel=9)


def add_programs(wheel, tree):
    wheel.add("penstock/__init__.py", "")
    wheel.add("penstock/__main__.py", "from penstock.programs import penstock\n\npenstock()\n")
    wheel.add("penstock/programs.py", (HERE / "wheel" / "programs.py").read_text())
    for path in sorted(tree.rglob("*")):
        name = str(path.relative_to(tree))
        # A zip archive has no links. An entry point replaces each link to a program.
        if path.is_symlink() or not path.is_file() or name.startswith(LEFT_OUT):
            continue
        wheel.add(f"penstock/{name}", path.read_bytes(), path.stat().st_mode & 0o100 != 0)


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__.strip())
    tree, folder, version = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    tag = platform_tag()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"penstock-{version}-{tag}.whl"
    wheel = Wheel(path, f"penstock-{version}.dist-info")
    add_programs(wheel, tree)
    wheel.add_information("LICENSE", LICENCE.read_text())
    wheel.add_information("METADATA", metadata(version))
    wheel.add_information(
        "WHEEL", f"Wheel-Version: 1.0\nGenerator: penstock\nRoot-Is-Purelib: false\nTag: {tag}\n")
    wheel.add_information("entry_points.txt", ENTRY_POINTS)
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
