"""Clients in Node: plain fetch, and the packages of tests/conformance/node/package.json where they are installed."""

import os
import pathlib
import shutil
import subprocess

import pytest

from penstock_testing import BIN, Server

FOLDER = pathlib.Path(__file__).parent / "node"


@pytest.fixture(scope="module")
def echo():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo", "--api-profile", "tgi") as running:
        yield running


@pytest.mark.parametrize("script, package", [
    ("fetch", None), ("openai", "openai"), ("huggingface", "@huggingface/inference")])
def test_node(echo, script, package):
    if package is not None and not (FOLDER / "node_modules" / package).exists():
        pytest.skip(f"the package {package} is not installed (npm install in tests/conformance/node)")
    done = subprocess.run(["node", "--test", f"{script}.test.mjs"], cwd=FOLDER, timeout=120,
                          env={**os.environ, "PENSTOCK_URL": echo.url}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
