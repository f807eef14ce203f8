"""Runs the benchmark clients guidellm and aiperf against Penstock, unchanged, one after the other.

The reports that they write are kept in build/clients. --write makes docs/benchmarks/clients.md from them.
Exit code 1: a request failed, or a client wrote no report. Exit code 2: a client is not installed.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cpu"))
import programs  # noqa: E402  (puts the folders of the next two on the path)
from measure import describe_machine  # noqa: E402
from penstock_testing import BIN, DEMO_MODEL, REPOSITORY, Server  # noqa: E402
from reports import CLIENTS, page  # noqa: E402

DOCUMENT = REPOSITORY / "docs/benchmarks/clients.md"
VENV = REPOSITORY / "build/clients-venv"
KEPT = REPOSITORY / "build/clients"
SECONDS = 900  # of one client
PACKAGES = " ".join(f"{client.name}=={client.version}" for client in CLIENTS)
INSTALL = f"python3 -m venv {VENV} && {VENV}/bin/pip install {PACKAGES}"


def find(client, venvs):
    """The client's program, in a virtual environment or on the path."""
    places = [str(venv / "bin") for venv in venvs] + [os.environ["PATH"]]
    return shutil.which(client.name, path=os.pathsep.join(places))


def folder_of(model):
    """A folder as it is; a shape of the CPU benchmarks is made once."""
    if model == "demo":
        return DEMO_MODEL
    return programs.model(model) if model in programs.TYPES else pathlib.Path(model)


def run(client, program, server, model, arguments):
    """The client's row of the table. Its report stays in KEPT."""
    folder = KEPT / pathlib.Path(model).name / client.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    load = os.getloadavg()[0]
    command = client.command(program, server.url, pathlib.Path(model).name, folder_of(model).resolve(), folder,
                             arguments)
    with (folder / "output.log").open("w") as log:
        done = subprocess.run([str(part) for part in command], stdout=log, stderr=subprocess.STDOUT, cwd=folder,
                              timeout=SECONDS, check=False)
    report = folder / client.report
    if not report.exists():
        sys.exit(f"{client.name} made no report (exit code {done.returncode}): {folder / 'output.log'}")
    row = client.read(json.loads(report.read_text()))
    return {"model": pathlib.Path(model).name, "client": client.name, "load": load, **row}


def measure_all(found, arguments):
    for model in arguments.model:
        name = pathlib.Path(model).name
        with Server("--served-model-name", name, *arguments.server_option, model=folder_of(model)) as server:
            for client in CLIENTS:
                print(f"{name}: {client.name}", file=sys.stderr)
                yield run(client, found[client.name], server, model, arguments)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append",
                        help="demo, a folder, or a shape of make bench-cpu (default: demo and 135m)")
    parser.add_argument("--streams", type=int, default=8, help="requests at once (default: 8)")
    parser.add_argument("--requests", type=int, default=160, help="requests of a run (default: 160)")
    parser.add_argument("--input", type=int, default=128, help="tokens of a prompt (default: 128)")
    parser.add_argument("--output", type=int, default=64, help="tokens of an answer (default: 64)")
    parser.add_argument("--venv", action="append", type=pathlib.Path, help=f"where the clients are (default: {VENV})")
    parser.add_argument("--server-option", action="append", default=[], help="an option of penstock-launcher")
    parser.add_argument("--write", action="store_true", help="make docs/benchmarks/clients.md")
    arguments = parser.parse_args()
    arguments.model = arguments.model or ["demo", "135m"]
    return arguments


def main():
    arguments = parse()
    found = {client.name: find(client, arguments.venv or [VENV]) for client in CLIENTS}
    if missing := [name for name, program in found.items() if program is None]:
        print(f"{' and '.join(missing)}: not installed. This installs both:\n  {INSTALL}", file=sys.stderr)
        return 2
    if not (BIN / "penstock-launcher").exists():
        print(f"{BIN} has no penstock-launcher: make build", file=sys.stderr)
        return 2
    machine = {**describe_machine(), "system": f"Linux {platform.release()}"}
    rows = list(measure_all(found, arguments))
    print(json.dumps({"machine": machine, "rows": rows}, indent=1))
    if arguments.write:
        DOCUMENT.write_text(page(machine, rows, arguments))
    return 1 if any(row["failed"] or row["requests"] != arguments.requests for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
