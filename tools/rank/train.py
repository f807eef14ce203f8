#!/usr/bin/env python3
"""Trains the file of --rank-model from requests and the lengths of their answers.

usage: train.py LENGTHS --out FILE

LENGTHS is what `penstock-replay lengths LOG` prints. A fifth of the prompts is held out; equal
prompts are on the same side. Prints one JSON object:

  tau      Kendall's tau of predictions and lengths of the held-out prompts
  ceiling  Kendall's tau of two answers to the same prompt, where the log has two; else null
  share    tau / ceiling

Needs LightGBM (tools/rank/requirements.txt).
"""

import argparse
import json
import math
import sys
import time
import zlib

from features import FIXED, Features
from model_file import model_of, score_of, write
from tau import kendall

HELD_OUT = 5  # one prompt in this many
LEAST_ROWS = 200
RARE = 0.005  # shares of the prompts that have a word
COMMON = 0.95


def read(path):
    fields = {"prompt": list, "max_new_tokens": int, "length_given": bool, "request_class": int}
    fields["generated"] = int
    rows = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                sys.exit(f"{path}:{number}: must be one JSON object: {error}")
            for field, kind in fields.items():
                if not isinstance(row, dict) or not isinstance(row.get(field), kind):
                    sys.exit(f"{path}:{number}: `{field}` must be of type {kind.__name__}")
            if row["prompt"] and row["generated"] > 0:
                rows.append(row)
    if len(rows) < LEAST_ROWS:
        sys.exit(f"{path}: must have >= {LEAST_ROWS} answers. Given: {len(rows)}")
    return rows


def key_of(row):
    return tuple(row["prompt"])


def is_held_out(row):
    return zlib.crc32(b",".join(b"%d" % token for token in row["prompt"])) % HELD_OUT == 0


def words_in(prompt):
    last = prompt[-512:]
    return {
        tuple(last[first : first + length])
        for length in (1, 2, 3)
        for first in range(len(last) - length + 1)
    }


def choose_words(rows, logs, most):
    """The words whose presence separates short answers from long ones best (Welch's t)."""
    mean = sum(logs) / len(logs)
    sums = {}
    for row, log in zip(rows, logs, strict=True):
        for word in words_in(row["prompt"]):
            entry = sums.setdefault(word, [0, 0.0])
            entry[0] += 1
            entry[1] += log - mean
    least, greatest = max(10, RARE * len(rows)), COMMON * len(rows)
    strength = {
        word: abs(total) / math.sqrt(count * (1 - count / len(rows)))
        for word, (count, total) in sums.items()
        if least <= count <= greatest
    }
    return [list(word) for word in sorted(strength, key=lambda word: (-strength[word], word))[:most]]


def train(rows, logs, words, arguments):
    import lightgbm
    import numpy

    matrix = Features(words)
    inputs = numpy.array([matrix.of(row) for row in rows], dtype=numpy.float64)
    settings = {
        "objective": "regression",
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_data_in_leaf": max(5, len(rows) // 400),
        "feature_fraction": 0.5,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "deterministic": True,
        "num_threads": arguments.threads,
        "seed": arguments.seed,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(inputs, label=numpy.array(logs), params={"verbosity": -1})
    booster = lightgbm.train(settings, data, num_boost_round=arguments.trees)
    return [tree["tree_structure"] for tree in booster.dump_model()["tree_info"]]


def ceiling_of(rows):
    """Two answers to each prompt that has two."""
    answers = {}
    for row in rows:
        answers.setdefault(key_of(row), []).append(row["generated"])
    twice = [lengths for lengths in answers.values() if len(lengths) > 1]
    if len(twice) < 20:
        return None
    return kendall([lengths[0] for lengths in twice], [lengths[1] for lengths in twice])


def report(model, held):
    matrix = Features(model["words"])
    first = list({key_of(row): row for row in reversed(held)}.values())
    start = time.perf_counter()
    scores = [score_of(model, matrix.of(row)) for row in first]
    seconds = time.perf_counter() - start
    tau = kendall(scores, [row["generated"] for row in first])
    ceiling = ceiling_of(held)
    share = tau / ceiling if ceiling else None
    by_length = kendall([len(row["prompt"]) for row in first], [row["generated"] for row in first])
    return {
        "held_out": len(first),
        "tau": round(tau, 4),
        "ceiling": None if ceiling is None else round(ceiling, 4),
        "share": None if share is None else round(share, 4),
        "tau_of_prompt_length": round(by_length, 4),
        "python_us_per_request": round(1e6 * seconds / len(first)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lengths")
    parser.add_argument("--out", required=True)
    parser.add_argument("--words", type=int, default=512, help="at most this many words")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = read(arguments.lengths)
    held = [row for row in rows if is_held_out(row)]
    rows = [row for row in rows if not is_held_out(row)]
    if not held or not rows:
        sys.exit(f"{arguments.lengths}: must have several prompts")
    logs = [math.log2(row["generated"]) for row in rows]
    words = choose_words(rows, logs, arguments.words)
    roots = train(rows, logs, words, arguments)
    used = {node for root in roots for node in features_of(root)}
    kept = [number for number in range(len(words)) if FIXED + number in used]
    renumber(roots, {FIXED + number: FIXED + at for at, number in enumerate(kept)})
    model = model_of([words[number] for number in kept], roots, {})
    notes = {"trained_on": len(rows), "words_used": len(kept), **report(model, held)}
    write(arguments.out, {**model, **notes})
    print(json.dumps(notes, indent=1))


def features_of(node):
    if "leaf_value" in node:
        return []
    return [node["split_feature"]] + features_of(node["left_child"]) + features_of(node["right_child"])


def renumber(nodes, numbers):
    for node in nodes:
        if "leaf_value" in node:
            continue
        node["split_feature"] = numbers.get(node["split_feature"], node["split_feature"])
        renumber([node["left_child"], node["right_child"]], numbers)


if __name__ == "__main__":
    main()
