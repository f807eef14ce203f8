"""A few drills of each kind, and what their oracle finds. `make drills` runs a thousand."""

import asyncio
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import drill as drills  # noqa: E402
from load import Reading, compare  # noqa: E402
from proxy import Fault, Proxy  # noqa: E402

# One of each kind; the seed draws the rest.
KINDS = {"kill": (1, 1), "stop": (2, 1), "restart": (1, 2), "link-cut": (2, 1), "link-half-open": (1, 1),
         "link-bytes": (1, 1), "client-cut": (1, 1), "client-bytes": (2, 2)}


@pytest.fixture(scope="module")
def oracle():
    """Answers of simulated shards: they do not depend on the number of ranks."""
    return asyncio.run(drills.undisturbed("simulated", 1))


@pytest.mark.parametrize("fault", KINDS)
def test_no_token_is_lost_repeated_or_changed(fault, oracle):
    groups, ranks = KINDS[fault]
    drill = drills.Drill(seed=len(fault), engine="simulated", groups=groups, ranks=ranks, options=(), fault=fault,
                         times=1, moment=0.2, victim=len(fault) * 31)
    result = asyncio.run(drills.run(drill, oracle))
    assert result["problems"] == [], result
    assert bool(result["pauses_ms"]) == (fault in drills.LOSSES), "a loss was seen"


EXPECTED = {"tokens": [[0, 7, -1.0], [1, 8, -1.0], [2, 9, -1.0]], "text": "abc"}


@pytest.mark.parametrize("tokens, text, wrong", [
    ([[0, 7, -1.0], [1, 8, -1.0], [2, 9, -1.0]], "abc", {}),
    ([[0, 7, -1.0], [2, 9, -1.0]], "abc", {"lost": 1}),
    ([[0, 7, -1.0], [1, 8, -1.0], [1, 8, -1.0], [2, 9, -1.0]], "abc", {"repeated": 1}),
    ([[0, 7, -1.0], [1, 5, -1.0], [2, 9, -1.0]], "abc", {"differing": 1}),
    ([[0, 7, -1.0], [1, 8, -0.5], [2, 9, -1.0]], "abd", {"differing": 2}),
])
def test_the_oracle_sees_each_wrong_token(tokens, text, wrong):
    reading = Reading("r", tokens=tokens, text=text, ended=True)
    assert compare(reading, EXPECTED) == {"lost": 0, "repeated": 0, "differing": 0, **wrong}


def through(fault, sent=b"x" * 100):
    """What a client gets of `sent` through a proxy with the fault, and the number of connections that were harmed."""
    async def answer(_, writer):
        writer.write(sent)
        writer.close()

    async def ask():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server, Proxy(server.sockets[0].getsockname()[:2]) as proxy:
            proxy.fault = fault
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            got = b""
            try:
                while data := await asyncio.wait_for(reader.read(1 << 16), 1):
                    got += data
                end = "closed"
            except TimeoutError:
                end = "silent"
            except ConnectionError:
                end = "reset"
            writer.transport.abort()
            return got, end, proxy.struck

    return asyncio.run(ask())


@pytest.mark.parametrize("fault, bytes_, end, struck", [
    (Fault(), 100, ("closed",), 0),
    (Fault("slow", delay=0.01), 100, ("closed",), 0),
    (Fault("bytes"), 100, ("closed",), 0),
    (Fault("cut", after=40), 40, ("closed", "reset"), 1),
    (Fault("half-open", after=40), 40, ("silent",), 1),
])
def test_the_proxy_harms_bytes_as_it_says(fault, bytes_, end, struck):
    got, seen, harmed = through(fault)
    assert (len(got) <= bytes_ if fault.kind == "cut" else len(got) == bytes_) and seen in end and harmed == struck
