#!/usr/bin/env python3
"""What hostile grammars do to streams that run: the p99 gap between their tokens, with and without a
client that sends exploding expressions and schemas of 5 MB as fast as they are answered.

usage: grammar_neighbours.py [--json FILE] [--streams N] [--tokens N] [--rounds N]

Quiet and disturbed rounds alternate. Passes when the median p99 of the disturbed ones is at most
1.25 times that of the quiet ones and each refusal came within the limit of 2 s.
"""

import argparse
import json
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import Server  # noqa: E402

RATIO_AT_MOST = 1.25
LIMIT_SECONDS = 2.0
PROMPT = "Once upon a time"


def hostile_grammars():
    """Endless, all different, so that no cache answers them."""
    i = 0
    while True:
        i += 1
        yield {"type": "regex", "value": f"((.{{0,5{i % 10}}}a){{0,50}}b){{0,50}}{i}"}
        yield {"type": "regex", "value": f"((a{{1,100}}){{1,100}}){{1,100}}{i}"}
        big = {f"property {i} {n}": {"type": "string"} for n in range(100_000)}
        yield {"type": "json", "value": {"properties": big}}


class Attacker(threading.Thread):
    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.over, self.times = server, threading.Event(), []

    def run(self):
        for grammar in hostile_grammars():
            if self.over.is_set():
                return
            body = json.dumps({"inputs": PROMPT, "parameters": {"grammar": grammar}})
            begin = time.monotonic()
            status, _, payload = self.server.request("POST", "/generate", body)
            assert status == 422, (status, payload[:200])
            self.times.append(time.monotonic() - begin)


def p99_gap(server, streams, tokens):
    opened = [server.generate_stream(f"{PROMPT} {i}", max_new_tokens=tokens, do_sample=True, seed=i)
              for i in range(streams)]
    readers = [threading.Thread(target=stream.events) for stream in opened]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    gaps = sorted(b - a for s in opened for a, b in zip(s.times, s.times[1:]))
    return gaps[int(len(gaps) * 0.99)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    quiet, disturbed, refusals = [], [], []
    with Server("--payload-limit", "16MiB") as server:
        p99_gap(server, options.streams, 20)
        for _ in range(options.rounds):
            quiet.append(p99_gap(server, options.streams, options.tokens))
            attacker = Attacker(server)
            attacker.start()
            disturbed.append(p99_gap(server, options.streams, options.tokens))
            attacker.over.set()
            attacker.join()
            refusals += attacker.times
    ratio = statistics.median(disturbed) / statistics.median(quiet)
    result = {"p99_gap_quiet_ms": [1e3 * gap for gap in quiet],
              "p99_gap_disturbed_ms": [1e3 * gap for gap in disturbed], "ratio": ratio,
              "refusals": len(refusals), "slowest_refusal_s": max(refusals)}
    text = json.dumps(result, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0 if ratio <= RATIO_AT_MOST and max(refusals) <= LIMIT_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
