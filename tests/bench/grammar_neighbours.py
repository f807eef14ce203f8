#!/usr/bin/env python3
"""Measures what hostile grammars do to running streams: the p99 gap between tokens, with and without clients
that send costly expressions and schemas of 5 MB as fast as they are answered. Also measures how long a client
with another key waits whose grammar is known, or new and cheap.

usage: grammar_neighbours.py [--json FILE] [--streams N] [--tokens N] [--rounds N] [--attackers N]
                             [--cpu-threads N] [--model FOLDER] [--step-time TIME]

The model (the demo's, or --model) computes on one thread by default, so that on two processors one is left for
the router. With --step-time the shards are simulated, and their steps take that long, as steps on a GPU do.
The attackers are a process of class SCHED_IDLE that sends in small parts. On another machine they would cost
nothing here.

Rounds alternate between five cases: no attacker; one that uses another program instead of the server; one that
sends a single expression and a single schema; one that sends without end; and N at once (default 8). No grammar
occurs twice. Each case reports the ratio of the medians of the p99 gaps, how many hostile requests got 422, how
many 429, and the slowest answer. The other program reads the same bodies and refuses them unseen, after the same
time as the server. Its ratio is the cost of an attacker on this machine.

Passes if with one attacker the p99 gap is at most 1.25 times that of the quiet rounds and each of its requests got
422 within 2 s. With N at once each must get 422 or 429, because they send more grammars than can be checked. Their
ratio and the answers above 2 s are reported only.
"""

import argparse
import http.server
import itertools
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import BIN, DEMO_MODEL, Server  # noqa: E402
from streams import Streams  # noqa: E402

RATIO_AT_MOST = 1.25
LIMIT_SECONDS = 2.0
PIECE = 1 << 15
PROMPT = "Once upon a time"
PACE_SECONDS = 0.02  # of the other client's requests, which take processor time too
KEYS = "friend:f\nfoe:x\n"


def key(secret):
    return {"Authorization": f"Bearer {secret}"}


KEYS_OF_5_MB = ",".join(f'"property {n}":{{"type":"string"}}' for n in range(150_000))


def hostile_bodies(attack, attacker):
    """An endless sequence of different grammars, so that no cache answers them."""
    i = attack << 40 | attacker << 32
    empty = json.dumps(body_of({"type": "json", "value": {"properties": {}}}))
    begin, end = empty.split('"properties": {}')
    end = f'":{{"type":"string"}},{KEYS_OF_5_MB}}}{end}'
    while True:
        i += 1
        yield json.dumps(body_of({"type": "regex", "value": f"((.{{0,5{i % 10}}}a){{0,50}}b){{0,50}}{i}"}))
        yield f'{begin}"properties":{{"first {i}{end}'


def body_of(grammar, **parameters):
    return {"inputs": PROMPT, "parameters": {"grammar": grammar, **parameters}}


class Address:
    """The address of a server, for the process of the attackers."""

    connect, tls = Server.connect, None

    def __init__(self, host, port):
        self.host, self.port = host, port

    def post(self, path, body, headers):
        """(status, body). Sends in small parts, because one large send keeps the kernel busy."""
        connection = self.connect()
        body = body.encode()
        connection.putrequest("POST", path)
        all_headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        for name, value in all_headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        for at in range(0, len(body), PIECE):
            connection.send(body[at:at + PIECE])
        response = connection.getresponse()
        payload = response.read()
        connection.close()
        return response.status, payload


class Attacker(threading.Thread):
    def __init__(self, server, bodies):
        super().__init__(daemon=True)
        self.server, self.bodies, self.over, self.times = server, bodies, threading.Event(), {422: [], 429: []}
        self.surprise = None  # an answer that is no refusal ends the attacker and fails the run

    def run(self):
        for body in self.bodies:
            if self.over.is_set():
                return
            begin = time.monotonic()
            status, payload = self.server.post("/generate", body, key("x"))
            if status not in self.times:
                self.surprise = f"{status}: {payload[:200]}"
                return
            self.times[status].append(time.monotonic() - begin)


def attack(host, port, number, count, requests):
    """The process of the attackers. Runs until its input ends, then prints the answers. 0 requests: endless."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    attackers = [Attacker(Address(host, port), itertools.islice(hostile_bodies(number, i), requests or None))
                 for i in range(count)]
    for attacker in attackers:
        attacker.start()
    print("begun", flush=True)
    sys.stdin.read()
    for attacker in attackers:
        attacker.over.set()
    for attacker in attackers:
        attacker.join()
    print(json.dumps([{"times": a.times, "surprise": a.surprise} for a in attackers]))


class Refusal(http.server.BaseHTTPRequestHandler):
    """Reads a body and refuses it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        while left > 0:
            left -= len(self.rfile.read(min(left, PIECE)))
        self.server.over.wait(self.server.seconds)
        self.send_response(422)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def refuse_all(seconds):
    """The program that the attacker uses instead of the server. Runs until its input ends."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusal)
    server.seconds, server.over = float(seconds), threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    server.over.set()


class RefusalServer:
    """The process that refuses all requests."""

    host = "127.0.0.1"

    def __init__(self, seconds):
        command = [sys.executable, __file__, "--refuse-all", str(seconds)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()


class Attackers:
    """The process of the attackers, as a client of the server."""

    attacks = itertools.count(1)

    def __init__(self, server, count, requests):
        numbers = [str(number) for number in (server.port, next(self.attacks), count, requests)]
        self.command = [sys.executable, __file__, "--attack", server.host, *numbers]
        self.got = []

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "begun\n"

    def stop(self):
        answer, _ = self.process.communicate()
        self.got = json.loads(answer)


class Neighbour(threading.Thread):
    """Requests one token alternately under a known grammar and a new one."""

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
        while not self.over.wait(PACE_SECONDS):
            self.ask("[a-z]+", self.known)
            self.over.wait(PACE_SECONDS)
            self.ask(f"[a-z]{{1,{len(self.new) + 2}}}", self.new)

    def stop(self):
        self.over.set()
        self.join()


def p99_gap(server, count, tokens):
    with Streams(server) as streams:
        readings = [streams.open("/generate_stream", {"inputs": f"{PROMPT} {i}", "parameters": {
            "max_new_tokens": tokens, "do_sample": True, "seed": i}}, key("f")) for i in range(count)]
        streams.wait(readings, tokens)
    gaps = sorted(b - a for reading in readings for a, b in zip(reading.times, reading.times[1:]))
    p99 = gaps[int(len(gaps) * 0.99)]
    if p99 == 0:
        raise SystemExit("the streams were not read as they came: nothing was measured")
    return p99


def round_of(server, options, clients):
    """The p99 gap of streams while these clients run."""
    for client in clients:
        client.start()
    gap = p99_gap(server, options.streams, options.tokens)
    for client in clients:
        client.stop()
    return gap


class Side:
    """What happened in the rounds with one number of attackers."""

    def __init__(self, attackers, requests=0):
        self.attackers, self.requests = attackers, requests
        self.gaps, self.times, self.surprises = [], {422: [], 429: []}, []
        self.known, self.new = [], []

    def take_round(self, server, options, asked=None):
        """The attackers use this server, too, unless another address is given."""
        neighbour, attackers = Neighbour(server), Attackers(asked or server, self.attackers, self.requests)
        clients = [attackers, neighbour] if self.attackers else [neighbour]
        self.gaps.append(round_of(server, options, clients))
        self.known += neighbour.known
        self.new += neighbour.new
        for got in attackers.got:
            for status, times in got["times"].items():
                self.times[int(status)] += times
            if got["surprise"]:
                self.surprises.append(got["surprise"])

    def answer_times(self):
        return self.times[422] + self.times[429]

    def report(self, quiet):
        return {"attackers": self.attackers, "p99_gap_ms": [round(1e3 * gap, 2) for gap in self.gaps],
                "ratio": round(statistics.median(self.gaps) / statistics.median(quiet.gaps), 3),
                "refused_422": len(self.times[422]), "refused_429": len(self.times[429]),
                "slowest_422_s": round(max(self.times[422], default=0.0), 3),
                "slowest_s": round(max(self.answer_times(), default=0.0), 3),
                "beyond_limit": sum(t > LIMIT_SECONDS for t in self.answer_times()),
                "no_refusals": self.surprises,
                "known_grammar_s": {"median": statistics.median(self.known), "max": max(self.known)},
                "new_grammar_s": {"median": statistics.median(self.new), "max": max(self.new)}}


def take_rounds(server, options, quiet, elsewhere, single, one, many):
    for _ in range(options.rounds):
        one.take_round(server, options)
        single.take_round(server, options)
        quiet.take_round(server, options)
        with RefusalServer(statistics.median(one.answer_times())) as other:
            elsewhere.take_round(server, options, asked=other)
        many.take_round(server, options)


def failures(single, one, many, quiet):
    """The failed expectations, as text."""
    found = [f"{side.attackers} attackers: no refusal: {text}" for side in (single, one, many)
             for text in side.surprises]
    for name, side in ("single requests", single), ("one attacker", one):
        ratio = side.report(quiet)["ratio"]
        if ratio > RATIO_AT_MOST:
            found.append(f"{name}: p99 gap {ratio} times that without, at most {RATIO_AT_MOST}")
        if not side.times[422] or side.times[429]:
            found.append(f"{name}: {len(side.times[422])} answers of 422 and {len(side.times[429])} of 429")
        if side.times[422] and max(side.times[422]) > LIMIT_SECONDS:
            found.append(f"{name}: an answer after {max(side.times[422]):.2f} s, at most {LIMIT_SECONDS} s")
    if not many.answer_times():
        found.append(f"{many.attackers} attackers: no answer")
    return found


def shard_options(options):
    if options.step_time is None:
        return ["--kv-cache-memory", "512MiB", "--cpu-threads", str(options.cpu_threads)]
    return ["--shard-program", str(BIN / "penstock-simshard"), "--tokens", "echo", "--step-time", options.step_time]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--attackers", type=int, default=8)
    parser.add_argument("--cpu-threads", type=int, default=1)
    parser.add_argument("--model", default=DEMO_MODEL)
    parser.add_argument("--step-time", help="of simulated shards, as 20ms")
    parser.add_argument("--attack", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--refuse-all", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        host, *numbers = options.attack
        return attack(host, *map(int, numbers))
    if options.refuse_all:
        return refuse_all(options.refuse_all)
    quiet, elsewhere, single, one, many = sides = Side(0), Side(1), Side(1, 2), Side(1), Side(options.attackers)
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as keys:
        keys.write(KEYS)
        keys.flush()
        with Server("--payload-limit", "16MiB", "--api-keys-file", keys.name, *shard_options(options),
                    model=options.model) as server:
            p99_gap(server, options.streams, 20)
            take_rounds(server, options, *sides)
    told = {name: side.report(quiet) for name, side in zip(("quiet", "elsewhere", "single", "one", "many"), sides)}
    wrong = failures(single, one, many, quiet)
    shards = f"{pathlib.Path(options.model).name} {' '.join(shard_options(options)[-2:])}"
    text = json.dumps({"shards": shards, **told, "failures": wrong}, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
