import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from penstock_testing import BIN, DEMO_MODEL, Server  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def binaries():
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")


@pytest.fixture(scope="module")
def demo_server():
    """One shard with the demo model, shared by the tests of a module that do no harm."""
    with Server() as server:
        yield server


@pytest.fixture
def simulated():
    """simulated(*options, model=..., ranks=1, tls=None, env=None): a server over penstock-simshard."""
    servers = []

    def start(*options, model=DEMO_MODEL, ranks=1, tls=None, env=None):
        server = Server("--shard-program", BIN / "penstock-simshard", "--num-shard", str(ranks),
                        *options, model=model, tls=tls, env=env)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
