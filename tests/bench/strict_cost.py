#!/usr/bin/env python3
"""Measures what the grammar of a strict tool adds to the time between tokens at eight streams.

usage: strict_cost.py [--rounds N] [--tokens N] [--model FOLDER] [--server-option OPTION]...

Rounds alternate: eight chats at once whose call the grammar forces, and the same chats without a grammar. Both
generate the same number of tokens, whatever they are. Prints the median of the times per token of a stream, and
the ratio of the pairs. Passes if the median ratio is at most 1.05.
"""

import argparse
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import DEMO_MODEL, Server, at_once  # noqa: E402

RATIO_AT_MOST = 1.05
STREAMS = 8
# Too long to end before the limit.
SCHEMA = {"type": "object", "required": ["items"], "additionalProperties": False, "properties": {
    "items": {"type": "array", "minItems": 1000, "items": {
        "type": "object", "required": ["name", "count"], "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}}}}
TOOL = {"type": "function", "function": {"name": "f", "strict": True, "parameters": SCHEMA}}


def body(tokens, seed, forced):
    request = {"messages": [{"role": "user", "content": "Once upon a time"}], "max_tokens": tokens,
               "ignore_eos": True, "min_tokens": tokens, "temperature": 1, "seed": seed, "stream": True}
    return {**request, "tools": [TOOL], "tool_choice": "required"} if forced else request


def seconds_per_token(server, tokens, seed, forced):
    def one(i):
        stream = server.stream("/v1/chat/completions", body(tokens, seed + i, forced))
        stream.events()
        return (stream.times[-1] - stream.times[0]) / (tokens - 1)

    return statistics.median(at_once(STREAMS, one))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--model", default=DEMO_MODEL)
    parser.add_argument("--server-option", action="append", default=[])
    given = parser.parse_args()
    pairs = []
    with Server("--tool-format", "hermes", *given.server_option, model=given.model) as server:
        for forced in (False, True):
            seconds_per_token(server, given.tokens, 0, forced)
        for n in range(given.rounds):
            free = seconds_per_token(server, given.tokens, 8 * n, False)
            pairs.append((free, seconds_per_token(server, given.tokens, 8 * n, True)))
    ratio = statistics.median(forced / free for free, forced in pairs)
    print(json.dumps({"free_ms": round(1e3 * statistics.median(p[0] for p in pairs), 3),
                      "forced_ms": round(1e3 * statistics.median(p[1] for p in pairs), 3),
                      "ratio": round(ratio, 3)}))
    return 0 if ratio <= RATIO_AT_MOST else 1


if __name__ == "__main__":
    sys.exit(main())
