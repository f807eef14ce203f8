"""Loads a server in every way that costs the router memory, and checks that it never holds more than the bound
that it printed at start.

usage: soak.py [--seconds N] [--connections N] [--streams N]

Clients connect and disconnect, read slowly or not at all, and send large, broken and incomplete bodies, costly
grammars and pipelined requests. They are refused, or request long answers. At the same time streams are read as fast
as they arrive (crowd.py). The shards are simulated and answer at once.

Prints JSON: the bound, the resident size each second, the peak, and what was sent. Exits with 1 if the peak exceeds
the bound, the size keeps growing in the second half, or the server does not answer at the end.
"""

import argparse
import contextlib
import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import BIN, DEMO_MODEL, Server  # noqa: E402

MIB = 1 << 20
CROWD = str(pathlib.Path(__file__).with_name("crowd.py"))
SHOWN = 120
LEAST_QUARTER = 15  # seconds that a check of growth needs


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
    """Threads that misbehave in different ways until the deadline."""

    WAYS = ("plain", "stream", "slow", "large", "broken", "half", "spans", "grammar", "pipelined", "details")

    def __init__(self, server, seconds, payload):
        self.server = server
        self.deadline = time.monotonic() + seconds
        self.payload = payload
        self.over = threading.Event()
        self.counts = dict.fromkeys((*self.WAYS, "refused"), 0)
        self.lock = threading.Lock()

    def connect(self):
        return contextlib.closing(socket.create_connection((self.server.host, self.server.port), timeout=30))

    def run(self, seed):
        draw = random.Random(seed)
        ways = [getattr(self, way) for way in self.WAYS]
        # Clients that keep the text threads busy are rare; otherwise no other request would be served.
        weights = [1 if way in ("large", "spans", "grammar") else 4 for way in self.WAYS]
        while time.monotonic() < self.deadline:
            way = draw.choices(ways, weights)[0]
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
        """Reads a part of a stream and disconnects."""
        with self.connect() as client:
            client.sendall(post("/generate_stream", generation("Once upon a time", max_new_tokens=800)))
            for _ in range(draw.randrange(1, 40)):
                if not self.answer(client):
                    return

    def slow(self, draw):
        """Requests a long answer and reads nothing for a while."""
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

    def spans(self, draw):
        """An answer that is far larger than the request."""
        with self.connect() as client:
            client.sendall(post("/tokenize", generation("a b " * draw.randrange(1000, self.payload // 5))))
            self.answer(client)
            self.over.wait(draw.random())

    def grammar(self, draw):
        with self.connect() as client:
            exploding = "(" * 12 + "a{1,40}" + "){1,40}" * 12
            wide = {"properties": {f"p{i}": {"type": "string"} for i in range(draw.randrange(1, 400))}}
            value = draw.choice([{"type": "regex", "value": exploding}, {"type": "json", "value": wide}])
            client.sendall(post("/generate", generation("x", grammar=value, max_new_tokens=20)))
            self.answer(client)

    def pipelined(self, draw):
        with self.connect() as client:
            one = post("/generate", generation("x", max_new_tokens=draw.randrange(1, 50)))
            client.sendall(one.replace(b"Connection: close", b"Connection: keep-alive") * draw.randrange(2, 200))
            self.answer(client)

    def details(self, draw):
        """A plain answer that has everything in it."""
        with self.connect() as client:
            client.sendall(post("/generate", generation(
                "all of it " * 200, max_new_tokens=1000, details=True, decoder_input_details=True, top_n_tokens=5,
                do_sample=True, best_of=2)))
            self.answer(client)

    def half(self, draw):
        """Announces a large body and sends a part of it."""
        with self.connect() as client:
            whole = post("/generate", b"x" * (self.payload - 1024))
            client.sendall(whole[: draw.randrange(100, len(whole))])


class Samples:
    """The resident size of a process, each second, until `over`."""

    def __init__(self, pid, over):
        self.pid = pid
        self.over = over
        self.sizes = [resident(pid, "VmRSS")]
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        while not self.over.wait(1):
            self.sizes.append(resident(self.pid, "VmRSS"))

    def grows(self):
        """Whether the last quarter uses more than the second, by more than the heap's fragmentation explains."""
        quarter = len(self.sizes) // 4
        if quarter < LEAST_QUARTER:
            return False
        second, last = (sum(part) / quarter for part in (self.sizes[quarter:2 * quarter], self.sizes[-quarter:]))
        return last > 1.25 * second + 16 * MIB

    def shown(self):
        """At most SHOWN values in MiB: the highest of each interval."""
        stretch = -(-len(self.sizes) // SHOWN)
        return [max(self.sizes[i:i + stretch]) // MIB for i in range(0, len(self.sizes), stretch)]


def load(server, seconds, clients, streams, payload):
    """What was sent in `seconds`."""
    misbehaving = Clients(server, seconds, payload)
    threads = [threading.Thread(target=misbehaving.run, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    crowd = subprocess.run([sys.executable, CROWD, server.host, str(server.port), str(streams), str(seconds)],
                           check=True, capture_output=True, text=True)
    misbehaving.over.set()
    for thread in threads:
        thread.join()
    return misbehaving.counts | {"crowd": json.loads(crowd.stdout)}


def soak(seconds, clients, streams, payload=2 * MIB, options=()):
    """The report of one run."""
    permits = ("--max-concurrent-requests", str(streams + clients))
    common = ("--shard-program", BIN / "penstock-simshard", "--payload-limit", str(payload), "--log-level", "info")
    with Server(*common, *permits, *options, model=DEMO_MODEL) as server:
        bound = re.search(r"memory of the router: .*?at most ([\d.]+) ([MG])iB", server.output())
        bound_mib = round(float(bound.group(1)) * {"M": 1, "G": 1024}[bound.group(2)])
        pid = server.pid_of("penstock-router")
        over = threading.Event()
        samples = Samples(pid, over)
        try:
            sent = load(server, seconds, clients, streams, payload)
        finally:
            over.set()
            samples.thread.join()
        healthy = server.request("GET", "/health")[0] == 200
        peak = max(resident(pid, "VmHWM"), *samples.sizes)
    return {
        "seconds": seconds,
        "clients": clients,
        "streams": streams,
        "bound_mib": bound_mib,
        "start_mib": samples.sizes[0] // MIB,
        "end_mib": samples.sizes[-1] // MIB,
        "peak_mib": peak // MIB,
        "within_bound": peak <= bound_mib * MIB,
        "grows": samples.grows(),
        "healthy": healthy,
        "sent": sent,
        "samples_mib": samples.shown(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--connections", type=int, default=48, help="clients that misbehave, at the same time")
    parser.add_argument("--streams", type=int, default=160, help="streams that are kept open beside them")
    arguments = parser.parse_args()
    report = soak(arguments.seconds, arguments.connections, arguments.streams)
    print(json.dumps(report, indent=1))
    return 0 if report["within_bound"] and report["healthy"] and not report["grows"] else 1


if __name__ == "__main__":
    sys.exit(main())
