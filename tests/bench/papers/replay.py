"""Runs the programs of the benchmarks and reads what they print."""

import json
import os
import pathlib
import subprocess

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
BIN = pathlib.Path(os.environ.get("PENSTOCK_BIN", REPOSITORY / "build/bin"))
DATA = pathlib.Path(os.environ.get("PENSTOCK_SHARED_DATA", REPOSITORY.parent / "shared/data"))
TRACES = DATA / "traces"

# The reference figures were computed with this machine model and no host overhead.
MACHINE = {"machine": "h100-llama-3-8b-tp1-generic"}


def row(what, value, unit, bound, passed):
    return {"what": what, "value": value, "unit": unit, "pass": bound, "ok": bool(passed)}


def program(name, *arguments):
    done = subprocess.run(
        [str(BIN / name), *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout)


def replay(command, workload, **options):
    """`penstock-replay trace|search WORKLOAD --name value ...` as a dict."""
    arguments = [command, workload, "--json", "-"]
    for name, value in {**MACHINE, **options}.items():
        flag = "--" + name.replace("_", "-")
        arguments += [flag] if value is True else [flag, value]
    return program("penstock-replay", *arguments)
