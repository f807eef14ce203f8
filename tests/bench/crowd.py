"""Keeps many streams of a server busy, in one process that does little for each event.

usage: crowd.py HOST PORT STREAMS SECONDS [SEED]

Each of STREAMS clients requests one stream after another, long and short, with short and long prompts. Some of its
requests are refused, and some it cancels. Prints JSON: requests, events and bytes.
"""

import collections
import json
import random
import selectors
import socket
import sys
import time

PIECE = 1 << 18
LEAVES = 0.02  # of the reads
WAYS = ("short", "long", "large", "refused")
WEIGHTS = (30, 65, 2, 3)
BACK_OFF = 0.05  # seconds, after a refusal


def body_of(way, draw):
    if way == "large":
        return {"inputs": "large words " * draw.randrange(500, 3000), "parameters": {"truncate": 1000}}
    if way == "refused":
        return draw.choice([{"inputs": ""}, {"inputs": "x", "parameters": {"max_new_tokens": 0}},
                            {"inputs": "x", "parameters": {"temperature": -1}}])
    tokens = draw.randrange(1, 20) if way == "short" else draw.randrange(200, 1500)
    top = draw.choice((0, 0, 0, 5))
    return {"inputs": "river stone " * draw.randrange(1, 30),
            "parameters": {"max_new_tokens": tokens, "ignore_eos_token": True, "top_n_tokens": top}}


class Crowd:
    def __init__(self, host, port, streams, seed):
        self.address = (host, port)
        self.streams = streams
        self.draw = random.Random(seed)
        self.selector = selectors.DefaultSelector()
        self.counts = collections.Counter()
        self.ask_from = 0.0  # by the clock

    def ask(self):
        way = self.draw.choices(WAYS, WEIGHTS)[0]
        body = json.dumps(body_of(way, self.draw)).encode()
        try:
            client = socket.create_connection(self.address, timeout=10)
            client.sendall(b"POST /generate_stream HTTP/1.1\r\nHost: crowd\r\nConnection: close\r\n"
                           b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except OSError:
            self.counts["not_connected"] += 1
            return
        client.setblocking(False)
        self.counts[way] += 1
        self.selector.register(client, selectors.EVENT_READ)

    def read(self, client):
        """Whether there will be more."""
        try:
            data = client.recv(PIECE)
        except OSError:
            self.counts["cut"] += 1
            return False
        if b'"overloaded"' in data:  # TGI's streams say so with status 200
            self.counts["overloaded"] += 1
            self.ask_from = time.monotonic() + BACK_OFF
            return False
        self.counts["events"] += data.count(b"}\n\n")
        self.counts["bytes"] += len(data)
        if data and self.draw.random() < LEAVES:
            self.counts["left"] += 1
            return False
        return bool(data)

    def run(self, seconds):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            while len(self.selector.get_map()) < self.streams and time.monotonic() >= self.ask_from:
                self.ask()
            for key, _ in self.selector.select(BACK_OFF):
                if not self.read(key.fileobj):
                    self.selector.unregister(key.fileobj)
                    key.fileobj.close()
        return dict(self.counts)


def main():
    host, port, streams, seconds, seed = (*sys.argv[1:], "1")[:5]
    print(json.dumps(Crowd(host, int(port), int(streams), int(seed)).run(float(seconds))))


if __name__ == "__main__":
    main()
