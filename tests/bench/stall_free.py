#!/usr/bin/env python3
"""Measures what a long prompt does to running streams, over HTTP with the real router and simulated shards.

usage: stall_free.py [--json FILE] [--time-scale K] [--machine NAME] [--budget TOKENS]

32 requests stream at a context of about 1,024 tokens on one simulated machine. Then a prompt of 4,096 tokens
arrives. There are two runs: with a token budget per step (chunked prefill), and with the prompt computed in one step
(--prefill whole). Every simulated step takes K times as long as on the machine, so that this machine keeps up. All
times below are divided by K.

Passes if the longest gap of any stream is at most 2.3 decode-only steps with the budget and at least 9 with the whole
prompt, and the long prompt's first token takes at most 1.5 times as long.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from penstock_testing import BIN, DEMO_MODEL, Server  # noqa: E402
from streams import Streams  # noqa: E402

STREAMS = 32
PROMPT = 960  # plus what is generated until the long prompt comes: about 1,024
LONG_PROMPT = 4096
STEADY_TOKENS = 12  # of every stream, before the long prompt comes
GAP_AT_MOST = 2.3
GAP_WHOLE_AT_LEAST = 9
TTFT_AT_MOST = 1.5


def completion(streams, token, length, max_tokens):
    body = {
        "model": "tgi",
        "prompt": [token] * length,
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
    }
    return streams.open("/v1/completions", body)


def measure(arguments, *options):
    simulated = (
        "--shard-program",
        BIN / "penstock-simshard",
        "--step-time-model",
        arguments.machine,
        "--time-scale",
        arguments.time_scale,
        "--tokens",
        "echo",
        "--blocks",
        16384,
        "--max-sequence-length",
        8192,
        "--graceful-termination-timeout",
        "1s",
    )
    with Server(*simulated, *options, model=DEMO_MODEL) as server, Streams(server) as streams:
        # The answer echoes the prompt as ids. The long prompt shares no prefix with the streams.
        echo = server.generate(" dog cat", max_new_tokens=2)["details"]["tokens"]
        token, other = (t["id"] for t in echo)
        running = [completion(streams, token, PROMPT, 600) for _ in range(STREAMS)]
        streams.wait(running, 1)
        steady = time.monotonic()
        streams.wait(running, max(len(reading.times) for reading in running) + STEADY_TOKENS)
        long_prompt = completion(streams, other, LONG_PROMPT, 4)
        streams.wait([long_prompt], 3)
        end = time.monotonic()
        decode_step = statistics.median(g for r in running for g in r.gaps(steady, long_prompt.began))
        longest = max(g for r in running for g in r.gaps(long_prompt.began - decode_step, end))
    scale = arguments.time_scale / 1000
    return {
        "decode_step_ms": round(decode_step / scale, 3),
        "longest_gap_ms": round(longest / scale, 3),
        "gap_ratio": round(longest / decode_step, 3),
        "ttft_ms": round((long_prompt.times[0] - long_prompt.began) / scale, 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="file for the result; standard output when absent")
    parser.add_argument("--time-scale", type=float, default=10)
    parser.add_argument("--machine", default="h100-llama-3-8b-tp1")
    parser.add_argument("--budget", type=int, default=512)
    arguments = parser.parse_args()
    chunked = measure(arguments, "--max-step-tokens", arguments.budget)
    whole = measure(arguments, "--max-step-tokens", 8192, "--prefill", "whole")
    ttft_ratio = round(chunked["ttft_ms"] / whole["ttft_ms"], 3)
    result = {
        "test": "stall_free",
        "machine": arguments.machine,
        "time_scale": arguments.time_scale,
        "streams": STREAMS,
        "long_prompt": LONG_PROMPT,
        "budget": arguments.budget,
        "chunked": chunked,
        "whole": whole,
        "ttft_ratio": ttft_ratio,
        "limits": {"gap_at_most": GAP_AT_MOST, "gap_whole_at_least": GAP_WHOLE_AT_LEAST, "ttft_at_most": TTFT_AT_MOST},
        "pass": chunked["gap_ratio"] <= GAP_AT_MOST
        and whole["gap_ratio"] >= GAP_WHOLE_AT_LEAST
        and ttft_ratio <= TTFT_AT_MOST,
    }
    text = json.dumps(result, indent=1)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(text + "\n")
    else:
        print(text)
    return 0 if result["pass"] else 1


if __name__ == "__main__":
    sys.exit(main())
