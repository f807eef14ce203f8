"""Loads a server in every way that costs the router memory, and checks that it never holds more than the bound
that it printed at start.

usage: soak.py [--seconds N] [--connections N]

Clients come and go, read slowly or not at all, send large bodies, broken ones and half ones, are refused, and ask for
long answers, all at once; the shards are simulated and answer at once. Prints JSON: the bound, the highest resident
size that the kernel saw, and what was sent. Exits with 1 when the bound was exceeded.
"""

import argparse
import contextlib
import json
import pathlib
import random
import re
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import BIN, DEMO_MODEL, Server  # noqa: E402

MIB = 1 << 20


def resident(pid, field):
    """VmRSS or VmHWM (the highest so far) of a process, in bytes."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+) kB", status).group(1))


def post(path, body):
    head = (
        f"POST {path} HTTP/1.1\r\nHost: soak\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def generation(text, **parameters):
    return json.dumps({"inputs": text, "parameters": parameters}).encode()


class Clients:
    """Threads that misbehave, each in its own ways, until the deadline."""

    def __init__(self, server, seconds, payload):
        self.server = server
        self.deadline = time.monotonic() + seconds
        self.payload = payload
        self.over = threading.Event()
        self.counts = dict.fromkeys(("plain", "stream", "slow", "large", "broken", "half", "refused"), 0)
        self.lock = threading.Lock()

    def connect(self):
        return contextlib.closing(socket.create_connection((self.server.host, self.server.port), timeout=30))

    def run(self, seed):
        draw = random.Random(seed)
        ways = [self.plain, self.stream, self.slow, self.large, self.broken, self.half]
        while time.monotonic() < self.deadline:
            way = draw.choice(ways)
            with contextlib.suppress(OSError):
                way(draw)
            with self.lock:
                self.counts[way.__name__] += 1

    def answer(self, client):
        head = client.recv(65536)
        if b" 429 " in head.split(b"\r\n", 1)[0]:
            with self.lock:
                self.counts["refused"] += 1
        return head

    def plain(self, draw):
        with self.connect() as client:
            text = "word " * draw.randrange(1, 400)
            client.sendall(post("/generate", generation(text, max_new_tokens=draw.randrange(1, 200), details=True)))
            self.answer(client)

    def stream(self, draw):
        """Reads a part of a stream and goes away."""
        with self.connect() as client:
            client.sendall(post("/generate_stream", generation("Once upon a time", max_new_tokens=800)))
            for _ in range(draw.randrange(1, 40)):
                if not self.answer(client):
                    return

    def slow(self, draw):
        """Asks for much and reads nothing for a while."""
        with self.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            body = generation("Tell me all", max_new_tokens=3000, top_n_tokens=5, details=True)
            client.sendall(post("/generate_stream", body))
            self.over.wait(draw.random() * 2)
            self.answer(client)

    def large(self, draw):
        with self.connect() as client:
            size = draw.randrange(self.payload // 2, self.payload + self.payload // 8)
            client.sendall(post("/generate", generation("large words " * (size // 12), truncate=10)))
            self.answer(client)

    def broken(self, draw):
        with self.connect() as client:
            body = draw.choice([b"{" * 50000, b"[" * 100000, b'{"inputs":' + b"9" * 100000, draw.randbytes(4096)])
            client.sendall(post("/generate", body))
            self.answer(client)

    def half(self, draw):
        """Promises a large body and sends a part of it."""
        with self.connect() as client:
            whole = post("/generate", b"x" * (self.payload - 1024))
            client.sendall(whole[: draw.randrange(100, len(whole))])


def soak(seconds, clients, payload=2 * MIB, options=()):
    """The report of one run."""
    common = ("--shard-program", BIN / "penstock-simshard", "--payload-limit", str(payload), "--log-level", "info")
    with Server(*common, *options, model=DEMO_MODEL) as server:
        bound_mib = int(re.search(r"memory of the router: at most (\d+) MiB", server.output()).group(1))
        pid = server.pid_of("penstock-router")
        load = Clients(server, seconds, payload)
        threads = [threading.Thread(target=load.run, args=(seed,)) for seed in range(clients)]
        start = resident(pid, "VmRSS")
        for thread in threads:
            thread.start()
        threads[0].join(seconds / 2)
        halfway = resident(pid, "VmRSS")
        threads[0].join(seconds / 2)
        load.over.set()
        for thread in threads:
            thread.join()
        healthy = server.request("GET", "/health")[0] == 200
        peak, end = resident(pid, "VmHWM"), resident(pid, "VmRSS")
    return {
        "seconds": seconds,
        "clients": clients,
        "bound_mib": bound_mib,
        "start_mib": start // MIB,
        "halfway_mib": halfway // MIB,
        "end_mib": end // MIB,
        "peak_mib": peak // MIB,
        "within_bound": peak <= bound_mib * MIB,
        "healthy": healthy,
        "sent": load.counts,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--connections", type=int, default=48, help="clients at the same time")
    arguments = parser.parse_args()
    report = soak(arguments.seconds, arguments.connections)
    print(json.dumps(report, indent=1))
    return 0 if report["within_bound"] and report["healthy"] else 1


if __name__ == "__main__":
    sys.exit(main())
