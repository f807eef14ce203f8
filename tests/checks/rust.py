#!/usr/bin/env python3
"""The Rust library is as rustfmt writes it, and clippy reports nothing.

usage: rust.py fmt|fmt-fix|clippy [ROOT]
"""

import os
import shutil
import subprocess
import sys

from sources import report, root_from, skip

COMMANDS = {
    "fmt": ("rustfmt", ["cargo", "fmt", "--check"]),
    "fmt-fix": ("rustfmt", ["cargo", "fmt"]),
    "clippy": (
        "cargo-clippy",
        ["cargo", "clippy", "--locked", "--all-targets", "-q", "--", "-D", "warnings"],
    ),
}


def check(root, command):
    environment = dict(os.environ)
    environment.setdefault("CARGO_TARGET_DIR", str(root / "build" / "rust"))
    done = subprocess.run(
        command, cwd=root / "text", env=environment, capture_output=True, text=True, check=False
    )
    output = (done.stdout + done.stderr).strip()
    return ([output] if done.returncode != 0 else []), "text/ is clean"


def main():
    os.environ["PATH"] += os.pathsep + os.path.expanduser("~/.cargo/bin")
    mode, root = sys.argv[1], root_from(sys.argv[2:])
    name = f"rust {mode}"
    tool, command = COMMANDS[mode]
    if not (root / "text" / "Cargo.toml").exists():
        skip(name, "no text/Cargo.toml in this tree")
    if not shutil.which(tool):
        skip(name, f"no {tool}; deploy/bootstrap --tests installs it beside Debian's cargo")
    return report(name, *check(root, command))


if __name__ == "__main__":
    sys.exit(main())
