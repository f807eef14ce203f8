#!/usr/bin/env python3
"""Measures what a new grammar does to running streams: the longest gap between their tokens while a client sends
costly valid grammars, each a new one, compared with sending the same one repeatedly.

usage: new_grammars.py [--json FILE] [--streams N] [--rounds N] [--words N] [--cpu-threads N] [--model FOLDER]

The grammars list many words (default 15,000). There are three cases: a known grammar; a new one, which router and
shard compile; and one that the router still knows and the shard has evicted, because --forget others (default 130)
were used in between. The last case shows the shard's compiling alone. Reports the longest gap of each round, the
answer times, and how often a step ran without a mask.
"""

import argparse
import json
import pathlib
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import DEMO_MODEL, Server  # noqa: E402
from streams import Streams  # noqa: E402

PROMPT = "Once upon a time"
LEAST_EVENTS = 100  # of each stream, among which the longest gap is searched
LATE = "penstock_grammar_late_masks_total"


def costly(number, words):
    draw = random.Random(number)
    listed = sorted({"".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=10)) for _ in range(words)})
    return "|".join(listed)


def ask(server, expression, tokens=1):
    begin = time.monotonic()
    status, _, payload = server.request("POST", "/generate", {"inputs": PROMPT, "parameters": {
        "max_new_tokens": tokens, "grammar": {"type": "regex", "value": expression}}})
    assert status == 200, (status, payload)
    return time.monotonic() - begin


def forget(server, first, count):
    """Cheap grammars, until the shard has only those."""
    for i in range(first, first + count):
        ask(server, f"[a-z]{{1,{i + 2}}}")


def round_of(server, streams, expressions):
    """(longest gap, answer times) of streams while a client requests these one by one."""
    answers = []

    def client():
        answers.extend(ask(server, expression) for expression in expressions)

    with Streams(server) as reader:
        readings = [reader.open("/v1/completions", {
            "prompt": f"{PROMPT} {i}", "max_tokens": 900, "ignore_eos": True, "stream": True})
            for i in range(streams)]
        reader.wait(readings, 30)
        thread = threading.Thread(target=client)
        begin, seen = time.monotonic(), max(len(reading.times) for reading in readings)
        thread.start()
        while thread.is_alive() and not any(reading.ended for reading in readings):
            reader.wait(readings, min(len(reading.times) for reading in readings) + 5)
        reader.wait(readings, seen + LEAST_EVENTS)
        end = time.monotonic()
        thread.join()
    return max(gap for reading in readings for gap in reading.gaps(begin, end)), answers


class Side:
    def __init__(self):
        self.gaps, self.answers, self.late = [], [], 0

    def take(self, server, streams, expressions):
        before = server.metrics().get(LATE, 0)
        gap, answers = round_of(server, streams, expressions)
        self.gaps.append(gap)
        self.answers += answers
        self.late += server.metrics().get(LATE, 0) - before

    def report(self):
        return {"longest_gap_ms": [round(1e3 * gap, 1) for gap in self.gaps],
                "median_ms": round(1e3 * statistics.median(self.gaps), 1),
                "answer_ms": {"median": round(1e3 * statistics.median(self.answers), 1),
                              "max": round(1e3 * max(self.answers), 1)}, "late_masks": self.late}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--words", type=int, default=15000)
    parser.add_argument("--forget", type=int, default=130)
    parser.add_argument("--cpu-threads", type=int, default=1)
    parser.add_argument("--model", default=DEMO_MODEL)
    options = parser.parse_args()
    known, new, forgotten = Side(), Side(), Side()
    with Server("--kv-cache-memory", "512MiB", "--cpu-threads", str(options.cpu_threads),
                model=options.model) as server:
        same = costly(0, options.words)
        ask(server, same)
        for i in range(options.rounds):
            known.take(server, options.streams, [same])
            fresh = costly(i + 1, options.words)
            new.take(server, options.streams, [fresh])
            forget(server, i * options.forget, options.forget)
            forgotten.take(server, options.streams, [fresh])
            ask(server, same)
    text = json.dumps({"known": known.report(), "new": new.report(), "forgotten": forgotten.report()}, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
