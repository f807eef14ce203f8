"""The file of --rank-model (router/rank/rank_model.h). Standard library only."""

import json
import math

FORMAT = "penstock rank model"
VERSION = 1
UNIT = 65536  # of a leaf: one doubling of the length
MOST_TOKENS = 1 << 20


def tree_of(root):
    """A tree of LightGBM's dump, its nodes numbered so that children come after their parents."""
    tree = {"feature": [], "threshold": [], "left": [], "right": [], "leaf": []}

    def add_leaf(node):
        tree["leaf"].append(round(node["leaf_value"] * UNIT))
        return -len(tree["leaf"])

    def add(node):
        if "leaf_value" in node:
            return add_leaf(node)
        number = len(tree["feature"])
        tree["feature"].append(node["split_feature"])
        # The features are integers, so `<= 3.5` and `<= 3` are the same.
        tree["threshold"].append(math.floor(node["threshold"]))
        tree["left"].append(0)
        tree["right"].append(0)
        tree["left"][number] = add(node["left_child"])
        tree["right"][number] = add(node["right_child"])
        return number

    add(root)
    return tree


def model_of(words, roots, notes):
    trees = [tree_of(root) for root in roots]
    return {"format": FORMAT, "version": VERSION, "base": 0, "words": words, "trees": trees, **notes}


def score_of(model, features):
    """65,536 times the base-2 logarithm of the expected length."""
    score = model["base"]
    for tree in model["trees"]:
        node = 0 if tree["feature"] else -1
        while node >= 0:
            left = features[tree["feature"][node]] <= tree["threshold"][node]
            node = tree["left" if left else "right"][node]
        score += tree["leaf"][-1 - node]
    return score


def tokens_of(score):
    return max(1, min(MOST_TOKENS, math.floor(2 ** (score / UNIT) + 0.5)))


def write(path, model):
    with open(path, "w") as file:
        json.dump(model, file, separators=(",", ":"))
        file.write("\n")
