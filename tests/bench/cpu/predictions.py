"""Errors of the cost model, fitted to the warm-up table, for steps of a running server."""

import pathlib
import random
import string
import tempfile
from statistics import median, quantiles

from penstock_testing import read_step_log
from programs import MODELS
from serving import serve
from streams import Streams

SEED = 20
AT_ONCE = 12
ANSWER = (8, 96)  # tokens, from and to


def send(server, requests, longest_prompt):
    """Runs requests of random lengths at the same time until the oldest ends."""
    lengths = random.Random(SEED)
    with Streams(server) as streams:
        running = []
        for _ in range(requests):
            prompt = "".join(lengths.choices(string.ascii_letters, k=lengths.randint(16, longest_prompt)))
            body = {"inputs": prompt, "parameters": {"max_new_tokens": lengths.randint(*ANSWER)}}
            running.append(streams.open("/generate_stream", body))  # a token per byte
            if len(running) == AT_ONCE:
                streams.wait(running[:1], float("inf"))
                running = [reading for reading in running if not reading.ended]
        streams.wait(running, float("inf"))


def errors(steps):
    found = sorted(abs(step["predicted_us"] / step["taken_us"] - 1) for step in steps)
    return {"steps": len(found), "median": median(found), "p90": quantiles(found, n=10)[8]}


def predictions(shape, requests, longest_prompt, quick):
    with tempfile.TemporaryDirectory(dir=MODELS) as folder:
        log = pathlib.Path(folder) / "steps"
        with serve(shape, "--step-log", log) as server:
            send(server, AT_ONCE if quick else requests, longest_prompt)
        steps = [step for step in read_step_log(log) if step["predicted_us"] and step.get("taken_us")]
    kinds = {
        "decode steps": errors([step for step in steps if not step["prefill_tokens"]]),
        "steps with a piece of a prompt": errors([step for step in steps if step["prefill_tokens"]]),
        "all steps": errors(steps),
    }
    return {"seed": SEED, "requests": requests, "longest_prompt": longest_prompt, "errors": kinds}
