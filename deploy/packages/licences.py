#!/usr/bin/env python3
"""Writes the licences of what the programs contain.

usage: licences.py FOLDER [LIBRARY...]

FOLDER/crates.txt: each Rust crate in the programs, its licence, and each licence text once.
FOLDER/PACKAGE.txt: the copyright file of each Debian package from which a LIBRARY is copied.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

MANIFEST = pathlib.Path(__file__).resolve().parents[2] / "text" / "Cargo.toml"
LICENCE_FILE = re.compile(r"(?i)(licen[cs]e|copying|notice|unlicense)")


def crates():
    """{(name, version): licence} of what is linked into the Rust library."""
    tree = subprocess.run(
        ["cargo", "tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none",
         "--format", "{p}|{l}", "--manifest-path", MANIFEST],
        capture_output=True, text=True, check=True).stdout
    found = {}
    for line in tree.splitlines():
        package, _, licence = line.partition("|")
        words = package.split()
        if "(/" in package:  # our own
            continue
        found[words[0], words[1].removeprefix("v")] = licence.removesuffix(" (*)")
    return found


def crate_folder(name, version):
    home = pathlib.Path(os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo")
    return next(iter(sorted((home / "registry" / "src").glob(f"*/{name}-{version}"))), None)


def write_crates(file):
    texts = {}  # text -> the crates that have it
    lines = ["Rust crates in Penstock's programs, and their licences:", ""]
    for (name, version), licence in sorted(crates().items()):
        lines.append(f"  {name} {version}: {licence}")
        folder = crate_folder(name, version)
        for path in sorted(folder.iterdir()) if folder else ():
            if path.is_file() and LICENCE_FILE.match(path.name):
                texts.setdefault(path.read_text(errors="replace").strip(), []).append(name)
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        lines += ["", "=" * 78, "Licence text of: " + ", ".join(sorted(set(names))), "", text]
    file.write_text("\n".join(lines) + "\n")


def package_of(library):
    """The Debian package of a file. Its folder may be listed as /lib or as /usr/lib."""
    path = os.path.realpath(library)
    for name in (path, path.removeprefix("/usr")):
        done = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise SystemExit(f"licences: {library} belongs to no Debian package")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_crates(folder / "crates.txt")
    for package in sorted(set(map(package_of, sys.argv[2:]))):
        shutil.copyfile(f"/usr/share/doc/{package}/copyright", folder / f"{package}.txt")


if __name__ == "__main__":
    main()
