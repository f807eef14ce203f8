"""Rolling restarts of two replicas behind a proxy that follows readiness, as a Kubernetes Service does.

The proxy gives each connection to a ready server. Readiness, pause before SIGTERM and drain are those of
the Helm chart. A restart starts the new server first (maxSurge 1, maxUnavailable 0). The proxy hears that
a server is stopping only some time later, as the nodes of a cluster do. No request may fail.
PENSTOCK_LONG_TESTS=1: 20 restarts and 10,000 requests.
"""

import asyncio
import contextlib
import itertools
import json
import os
import random

import yaml

from penstock_testing import BIN, REPOSITORY, Server

LONG = os.environ.get("PENSTOCK_LONG_TESTS") == "1"
RESTARTS = 20 if LONG else 2
REQUESTS = 10000 if LONG else 300
CLIENTS = 24
TOKENS = (1, 5, 60)  # of the answers; with steps of 20 ms the longest takes 1.2 s
CHART = yaml.safe_load((REPOSITORY / "deploy/helm/penstock/values.yaml").read_text())
DRAIN = CHART["drain"]
READINESS = CHART["probes"]["readiness"]


def probe(port):
    """What a kubelet learns from the readiness probe."""
    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET /ready HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            return (await reader.readline()).split()[1:2] == [b"200"]
        finally:
            writer.close()

    async def bounded():
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            return await asyncio.wait_for(ask(), READINESS["timeoutSeconds"])
        return False

    return bounded()


class Pod:
    """A server with its readiness. Starting and stopping block, so they run on threads."""

    def __init__(self):
        self.server = None
        self.ready = asyncio.Event()
        self.leaving = False
        self._prober = None

    async def start(self):
        self.server = await asyncio.to_thread(
            Server, "--shard-program", BIN / "penstock-simshard", "--step-time", "20ms",
            "--graceful-termination-timeout", str(DRAIN["timeoutSeconds"]))
        self._prober = asyncio.create_task(self._probe())
        await asyncio.wait_for(self.ready.wait(), 60)

    async def _probe(self):
        failures = 0
        while True:
            if await probe(self.server.port):
                failures = 0
                self.ready.set()
            else:
                failures += 1
                if failures >= READINESS["failureThreshold"]:
                    self.ready.clear()
            await asyncio.sleep(READINESS["periodSeconds"])

    async def stop(self, notice):
        """Deletes the pod: `notice` seconds later the proxy hears of it, and preStop runs meanwhile."""
        asyncio.get_running_loop().call_later(notice, lambda: setattr(self, "leaving", True))
        await asyncio.sleep(DRAIN["preStopSeconds"])
        code = await asyncio.to_thread(self.server.stop, DRAIN["timeoutSeconds"] + 10)
        self._prober.cancel()
        assert code == 0, self.server.output()


class Proxy:
    """Passes the bytes of a connection to one ready server, by turns."""

    def __init__(self):
        self.pods = []
        self._turn = itertools.count()

    async def listen(self):
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self._listener.sockets[0].getsockname()[1]

    async def _connected(self, client_reader, client_writer):
        ready = [pod for pod in self.pods if pod.ready.is_set() and not pod.leaving]
        try:
            pod = ready[next(self._turn) % len(ready)]
            reader, writer = await asyncio.open_connection("127.0.0.1", pod.server.port)
        except (OSError, ZeroDivisionError):
            client_writer.transport.abort()
            return
        await asyncio.gather(pass_on(client_reader, writer), pass_on(reader, client_writer))


async def pass_on(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def request(port, number):
    """None, or what went wrong."""
    tokens = TOKENS[number % len(TOKENS)]
    streams = number % 2 == 0
    body = json.dumps({"inputs": f"prompt {number}", "parameters": {"max_new_tokens": tokens}}).encode()
    path = b"/generate_stream" if streams else b"/generate"
    head = (b"POST %s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n"
            b"content-length: %d\r\n\r\n" % (path, len(body)))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + body)
        answer = await asyncio.wait_for(reader.read(), 120)
        writer.close()
    except (OSError, asyncio.TimeoutError) as error:
        return repr(error)
    if answer.split(b" ", 2)[1:2] != [b"200"] or b'"generated_text":"' not in answer or b'"error"' in answer:
        return f"{path} for {tokens} tokens: {answer[-300:]!r}"
    return None


class Load:
    """CLIENTS clients that ask until REQUESTS were answered and the restarts are over."""

    def __init__(self, port):
        self.port = port
        self.failures = []
        self.sent = itertools.count()
        self.done = 0
        self.over = asyncio.Event()

    async def run(self, pause):
        async def client():
            while not self.over.is_set() or self.done < REQUESTS:
                failure = await request(self.port, next(self.sent))
                self.done += 1
                if failure:
                    self.failures.append(failure)
                await asyncio.sleep(random.uniform(0, 2 * pause))
        await asyncio.gather(*(client() for _ in range(CLIENTS)))


async def restart(proxy, notice):
    """Replaces every pod: the next one starts while the last one still ends."""
    ends = []
    for old in list(proxy.pods):
        new = Pod()
        await new.start()
        proxy.pods.append(new)
        ends.append(asyncio.create_task(old.stop(notice())))
    await asyncio.gather(*ends)
    proxy.pods = [pod for pod in proxy.pods if not pod.leaving]


async def run_restarts():
    chance = random.Random(7)
    proxy = Proxy()
    proxy.pods = [Pod(), Pod()]
    try:
        await asyncio.gather(*(pod.start() for pod in proxy.pods))
        load = Load(await proxy.listen())
        clients = asyncio.create_task(load.run(pause=0.2))
        for _ in range(RESTARTS):
            await restart(proxy, lambda: chance.uniform(0, DRAIN["preStopSeconds"] / 2))
        load.over.set()
        await clients
        return load
    finally:
        await asyncio.gather(*(asyncio.to_thread(pod.server.stop) for pod in proxy.pods if pod.server))


def test_no_request_fails_over_rolling_restarts():
    load = asyncio.run(run_restarts())
    assert load.done >= REQUESTS
    assert load.failures == [], f"{len(load.failures)} of {load.done}: {load.failures[:5]}"
    print(f"{load.done} requests, {RESTARTS} restarts, none failed")
