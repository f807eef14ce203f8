#!/usr/bin/env python3
"""Writes requests and lengths with a known ceiling, in the form of `penstock-replay lengths`.

usage: synthetic.py FILE [--prompts N] [--noise S]

The base-2 logarithm of a length is a sum: 6, what each of the prompt's instructions adds, a
part of the logarithm of the prompt's length, and noise of deviation S. Each prompt is answered
twice with other noise. Prints the tau of the two answers (the ceiling), and the tau of the sum
without noise, which no predictor exceeds.
"""

import argparse
import json
import math
import random

from tau import kendall

VOCABULARY = 4000
INSTRUCTIONS = 60  # of two tokens each
FIRST_OF_INSTRUCTIONS = 3000


def make(prompts, noise, seed):
    draw = random.Random(seed)
    effects = [draw.gauss(0, 1.2) for _ in range(INSTRUCTIONS)]
    rows, without_noise = [], []
    for _ in range(prompts):
        length = int(2 ** draw.uniform(3, 9))
        prompt = [draw.randrange(FIRST_OF_INSTRUCTIONS) for _ in range(length)]
        log = 6 + 0.3 * (math.log2(length) - 6)
        for instruction in draw.sample(range(INSTRUCTIONS), draw.randint(1, 2)):
            at = draw.randrange(max(1, length - 40), length + 1)
            prompt[at:at] = [FIRST_OF_INSTRUCTIONS + 2 * instruction, FIRST_OF_INSTRUCTIONS + 2 * instruction + 1]
            log += effects[instruction]
        without_noise.append(log)
        for _ in range(2):
            answer = max(1, min(8192, round(2 ** (log + draw.gauss(0, noise)))))
            rows.append(
                {
                    "prompt": prompt,
                    "max_new_tokens": 8192,
                    "length_given": False,
                    "request_class": 2,
                    "generated": answer,
                    "cut": answer == 8192,
                }
            )
    return rows, without_noise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--prompts", type=int, default=6000)
    parser.add_argument("--noise", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows, without_noise = make(arguments.prompts, arguments.noise, arguments.seed)
    with open(arguments.file, "w") as file:
        for row in rows:
            file.write(json.dumps(row, separators=(",", ":")) + "\n")
    first = [row["generated"] for row in rows[::2]]
    second = [row["generated"] for row in rows[1::2]]
    result = {"ceiling": round(kendall(first, second), 4), "best": round(kendall(without_noise, first), 4)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
