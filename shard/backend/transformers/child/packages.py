"""The packages that the engine needs. Imports none of them, so that it can say which one is missing."""

import importlib.metadata
import re
import shlex
import sys

# The oldest versions whose caches caches.py knows.
NEEDED = {"torch": (2, 4), "transformers": (5, 0), "safetensors": (0, 4)}


def missing() -> str:
    """What to install, in one line; empty if nothing is missing."""
    absent, old = [], []
    for name, least in NEEDED.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            absent.append(name)
            continue
        if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < least:
            old.append(f"{name} {version} is too old, at least {_text(least)} is needed")
    if not absent and not old:
        return ""
    problems = ([f"{' and '.join(absent)} cannot be found"] if absent else []) + old
    wanted = " ".join(f"'{name}>={_text(least)}'" for name, least in NEEDED.items())
    return (f"{sys.executable}: {'; '.join(problems)}; install with: "
            f"{shlex.quote(sys.executable)} -m pip install {wanted}")


def _text(version) -> str:
    return ".".join(str(part) for part in version)
