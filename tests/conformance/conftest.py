"""One server with the demo model in float32 for all client libraries; answers are known to the letter."""

import json
import pathlib
import sys

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
# Test modules are imported by path: their helpers are in these two folders.
sys.path[:0] = [str(REPOSITORY / "tests" / "conformance"), str(REPOSITORY / "tests" / "integration")]

from penstock_testing import BIN, Server  # noqa: E402


@pytest.fixture(scope="session")
def server():
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    with Server("--dtype", "float32") as running:
        yield running


CHAT_TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: "


@pytest.fixture(scope="session")
def tools_server(tmp_path_factory):
    """A simulated shard that outputs the text between <<< and >>> of the last message, in the format hermes."""
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    config = tmp_path_factory.mktemp("template") / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": CHAT_TEMPLATE}))
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo",
                "--tool-format", "hermes", "--tokenizer-config-path", config) as running:
        yield running


@pytest.fixture(scope="session")
def golden():
    """golden(name): the case of that name of tests/data/goldens/demo.json."""
    path = REPOSITORY / "tests" / "data" / "goldens" / "demo.json"
    cases = {case["name"]: case for case in json.loads(path.read_text())["cases"]}
    return cases.__getitem__
