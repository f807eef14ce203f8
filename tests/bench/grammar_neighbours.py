#!/usr/bin/env python3
"""What hostile grammars do to streams that run: the p99 gap between their tokens, with and without
clients that send exploding expressions and schemas of 5 MB as fast as they are answered; and how long
a client of another key waits meanwhile whose grammar is known, or new and cheap.

usage: grammar_neighbours.py [--json FILE] [--streams N] [--tokens N] [--rounds N] [--attackers N]

Quiet and disturbed rounds alternate. Passes when the median p99 of the disturbed ones is at most
1.25 times that of the quiet ones, each hostile request was refused, and within the limit of 2 s. Refusals are 422,
or 429 where more are on their way than are checked within a second.
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import Server  # noqa: E402

RATIO_AT_MOST = 1.25
LIMIT_SECONDS = 2.0
PROMPT = "Once upon a time"


KEYS = "friend:f\nfoe:x\n"


def key(secret):
    return {"Authorization": f"Bearer {secret}"}


KEYS_OF_5_MB = ",".join(f'"property {n}":{{"type":"string"}}' for n in range(150_000))


def hostile_bodies(attacker):
    """Endless, all different, so that no cache answers them; joined from parts, since making 5 MB of JSON anew
    would hold up the readers of this process."""
    i = attacker << 32
    while True:
        i += 1
        yield json.dumps(body_of({"type": "regex", "value": f"((.{{0,5{i % 10}}}a){{0,50}}b){{0,50}}{i}"}))
        empty = json.dumps(body_of({"type": "json", "value": {"properties": {}}}))
        yield empty.replace('"properties": {}', f'"properties":{{"first {i}":{{"type":"string"}},{KEYS_OF_5_MB}}}')


def body_of(grammar, **parameters):
    return {"inputs": PROMPT, "parameters": {"grammar": grammar, **parameters}}


class Attacker(threading.Thread):
    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.server, self.number, self.over, self.times = server, number, threading.Event(), {422: [], 429: []}
        self.surprise = None  # an answer that is no refusal ends the attacker and fails the run

    def run(self):
        for body in hostile_bodies(self.number):
            if self.over.is_set():
                return
            begin = time.monotonic()
            status, _, payload = self.server.request("POST", "/generate", body, key("x"))
            if status not in self.times:
                self.surprise = f"{status}: {payload[:200]}"
                return
            self.times[status].append(time.monotonic() - begin)


class Neighbour(threading.Thread):
    """Asks for one token under a grammar that is known, and under one that is new, in turns."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.over, self.known, self.new = server, threading.Event(), [], []

    def ask(self, expression, times):
        body = body_of({"type": "regex", "value": expression}, max_new_tokens=1)
        begin = time.monotonic()
        status, _, payload = self.server.request("POST", "/generate", body, key("f"))
        assert status == 200, (status, payload)
        times.append(time.monotonic() - begin)

    def run(self):
        while not self.over.is_set():
            self.ask("[a-z]+", self.known)
            self.ask(f"[a-z]{{1,{len(self.new) + 2}}}", self.new)


def p99_gap(server, streams, tokens):
    opened = [server.generate_stream(f"{PROMPT} {i}", headers=key("f"), max_new_tokens=tokens, do_sample=True, seed=i)
              for i in range(streams)]
    readers = [threading.Thread(target=stream.events) for stream in opened]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    gaps = sorted(b - a for s in opened for a, b in zip(s.times, s.times[1:]))
    return gaps[int(len(gaps) * 0.99)]


def round_of(server, options, attackers, neighbour):
    """The p99 gap of streams beside which these clients run."""
    clients = [*attackers, neighbour]
    for client in clients:
        client.start()
    gap = p99_gap(server, options.streams, options.tokens)
    for client in clients:
        client.over.set()
    for client in clients:
        client.join()
    return gap


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--attackers", type=int, default=8)
    options = parser.parse_args()
    quiet, disturbed, refused, busy, known, new, surprises = [], [], [], [], [], [], []
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write(KEYS)
        keys.flush()
        with Server("--payload-limit", "16MiB", "--api-keys-file", keys.name) as server:
            p99_gap(server, options.streams, 20)
            for _ in range(options.rounds):
                quiet.append(round_of(server, options, [], Neighbour(server)))
                neighbour = Neighbour(server)
                others = [Attacker(server, number) for number in range(options.attackers)]
                disturbed.append(round_of(server, options, others, neighbour))
                known += neighbour.known
                new += neighbour.new
                refused += [t for other in others for t in other.times[422]]
                busy += [t for other in others for t in other.times[429]]
                surprises += [other.surprise for other in others if other.surprise]
    ratio = statistics.median(disturbed) / statistics.median(quiet)
    slowest = max(refused + busy)
    result = {"p99_gap_quiet_ms": [1e3 * gap for gap in quiet],
              "p99_gap_disturbed_ms": [1e3 * gap for gap in disturbed], "ratio": ratio,
              "attackers": options.attackers, "refused_422": len(refused), "refused_429": len(busy),
              "slowest_refusal_s": slowest, "no_refusals": surprises,
              "known_grammar_s": {"median": statistics.median(known), "max": max(known)},
              "new_grammar_s": {"median": statistics.median(new), "max": max(new)}}
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if ratio <= RATIO_AT_MOST and slowest <= LIMIT_SECONDS and not surprises else 1


if __name__ == "__main__":
    sys.exit(main())
