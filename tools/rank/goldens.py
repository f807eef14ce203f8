#!/usr/bin/env python3
"""Writes the golden file of the features and the trees: goldens.py FILE.

A small model, trained by LightGBM on synthetic.py's requests, and for requests of all kinds the
features, the score and the length that Python computes. The router must compute the same.
"""

import json
import math
import sys

from features import Features
from model_file import model_of, score_of, tokens_of
from synthetic import make
from train import choose_words, train


class Settings:
    trees, threads, seed = 12, 1, 1


def odd_requests(rows):
    plain = rows[0]
    yield {**plain, "prompt": [7]}
    yield {**plain, "prompt": rows[2]["prompt"] * 40, "length_given": True, "max_new_tokens": 16}
    yield {**plain, "prompt": rows[4]["prompt"][:3], "request_class": 4}
    yield {**plain, "prompt": [2147483647, 0, 4096, 0, 8192], "length_given": True, "max_new_tokens": 4294967295}


def main():
    rows, _ = make(300, 0.5, 3)
    rows = [row for row in rows if len(row["prompt"]) < 120]
    logs = [math.log2(row["generated"]) for row in rows]
    words = choose_words(rows, logs, 24)
    words += [[rows[0]["prompt"][0]], rows[0]["prompt"][:3]]
    words = [list(word) for word in dict.fromkeys(map(tuple, words))]
    model = model_of(words, train(rows, logs, words, Settings), {"note": "goldens"})
    features = Features(words)
    cases = []
    for row in [*rows[:60:5], *odd_requests(rows)]:
        asked = {key: row[key] for key in ("prompt", "max_new_tokens", "length_given", "request_class")}
        values = features.of(asked)
        score = score_of(model, values)
        cases.append({**asked, "features": values, "score": score, "tokens": tokens_of(score)})
    with open(sys.argv[1], "w") as file:
        json.dump({"model": model, "cases": cases}, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
