#!/usr/bin/env python3
"""Goldens of the tiny checkpoints: what transformers computes in float32 on one thread.

    make_model_goldens.py                       writes tests/data/goldens/models
    make_model_goldens.py --check               recomputes and compares; writes nothing
    make_model_goldens.py --seed N              other weights: build/oracle/seed-N, see --out
    --only TEXT                                 the variants whose names contain this

Format: tests/data/README.md.
"""

import argparse
import json
import math
import os
import random
import re
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers

from checkpoints import BOS, GOLDENS, Recipe, recipes

REPOSITORY = Path(__file__).resolve().parents[2]
PROMPT, NEW = 80, 32
ROWS = (5, 40, 79, 95, 111)  # positions with a golden row
CLOSE_CALL = 4e-3  # the best two logits of a greedy step: nearer ones say nothing
LEAST_BOUND = 1e-4
WIDE = 1e-4  # more than this between cached and whole is avoided
SENSITIVE = 4e-5  # and more than this by rounding alone
VARIED = 8  # different greedy ids
SEEDS = 40  # tried until no greedy step is a close call
OTHER_MEDIA = "vision|visual|multi_modal|audio"
CHECK_TOLERANCE = 5e-5  # other processors sum in another order


def rounded(value: float) -> float:
    return float(f"{value:.7g}")


def prompt_of(name: str) -> list[int]:
    source = random.Random("prompt " + name)
    return [BOS] + [source.randrange(256) for _ in range(PROMPT - 1)]


class Oracle:
    """One checkpoint in float32 with the plain attention of transformers."""

    def __init__(self, recipe: Recipe, folder: Path):
        self.recipe, self.folder = recipe, folder
        self.load()

    def load(self) -> None:
        """Called before each computation: some classes keep RoPE frequencies of longer texts."""
        kind = getattr(transformers, self.recipe.variant.oracle_class)
        self.model, info = kind.from_pretrained(
            self.folder, dtype=torch.float32, attn_implementation=self.recipe.variant.attention,
            output_loading_info=True)
        self.model.eval()
        self.check_loading(info)

    def check_loading(self, info: dict) -> None:
        """Everything must be where transformers looks for it, but for the towers of other media."""
        problems = [f"{kind}: {name}" for kind in (
            "missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")
            for name in info.get(kind) or [] if not re.search(OTHER_MEDIA, str(name))]
        if problems:
            raise ValueError(f"{self.recipe.model_type}-{self.recipe.name}: " + "; ".join(problems[:6]))

    @torch.no_grad()
    def whole(self, ids: list[int]) -> torch.Tensor:
        """The last row."""
        return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]

    @torch.no_grad()
    def cached(self, parts: list[list[int]]) -> list[torch.Tensor]:
        """The last row of each part; the parts follow each other."""
        self.load()
        cache, rows = None, []
        for part in parts:
            out = self.model(input_ids=torch.tensor([part]), past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            rows.append(out.logits[0, -1])
        return rows

    def greedy(self, prompt: list[int], by_step: bool) -> tuple[list[int], list[torch.Tensor]]:
        """The text with NEW greedy ids, and the row before each of them. `by_step`: with a cache."""
        self.load()
        ids, rows = list(prompt), []
        while len(ids) < PROMPT + NEW:
            if by_step:
                rows = self.cached([prompt] + [[i] for i in ids[PROMPT:]])
            else:
                rows.append(self.whole(ids))
            ids.append(int(rows[-1].argmax()))
        return ids, rows

    @torch.no_grad()
    def rounding(self, text: list[int]) -> float:
        """The most that a golden row moves when the embeddings change by a rounding error."""
        self.load()
        rows = [self.whole(text[:p + 1]) for p in ROWS]
        self.load()
        embeddings = self.model.get_input_embeddings().weight
        torch.manual_seed(1)
        embeddings.mul_(1 + 2.0 ** -24 * torch.randn_like(embeddings))
        return max((self.whole(text[:p + 1]) - row).abs().max().item() for p, row in zip(ROWS, rows))

    def golden(self, seed: int) -> dict:
        name = f"{self.recipe.model_type}-{self.recipe.name}"
        by_step = self.recipe.variant.length_rule == "step"
        text, steps = self.greedy(prompt_of(name), by_step)
        self.load()
        whole = {p: self.whole(text[:p + 1]) for p in range(PROMPT - 1 if not by_step else 0, len(text))
                 if p in ROWS or not by_step}
        for p in ROWS:
            if p not in whole:
                whole[p] = self.whole(text[:p + 1])
        decoded = self.cached([text[:PROMPT]] + [[i] for i in text[PROMPT:]])
        decoded = {PROMPT - 1 + i: row for i, row in enumerate(decoded)}
        original = self.recipe.variant.original_length
        compared = [p for p in decoded if p in whole and
                    (not original or (PROMPT <= original and p < original))]
        difference = max(((decoded[p] - whole[p]).abs().max().item() for p in compared), default=0.0)
        sample = sorted(random.Random("sample").sample(range(whole[5].numel()), 8))
        rows = [row_json(p, "whole", whole[p], sample) for p in ROWS]
        if by_step:
            rows += [row_json(p, "decode", decoded[p], sample) for p in ROWS if p >= PROMPT]
        best = [row.topk(2).values.tolist() for row in steps]
        return {
            "type": self.recipe.model_type, "variant": self.recipe.name, "seed": seed,
            "made_with": {"torch": torch.__version__.split("+")[0],
                          "transformers": transformers.__version__},
            "difference": rounded(difference), "bound": rounded(max(LEAST_BOUND, 3 * difference)),
            "prompt": text[:PROMPT], "sample": sample, "rows": rows,
            "greedy": {
                "ids": text[PROMPT:],
                "logprobs": [rounded(row.log_softmax(-1).max().item()) for row in steps],
                "margins": [rounded(a - b) for a, b in best],
                "close": [i for i, (a, b) in enumerate(best) if a - b < CLOSE_CALL]}}


def row_json(position: int, how: str, row: torch.Tensor, sample: list[int]) -> dict:
    top = row.topk(8)
    return {"position": position, "how": how,
            "top": [[int(i), rounded(v)] for v, i in zip(top.values.tolist(), top.indices.tolist())],
            "logsumexp": rounded(row.logsumexp(-1).item()), "sample": [rounded(row[i].item()) for i in sample]}


def make(recipe: Recipe, seed: int) -> tuple[dict, float]:
    """The golden, and how much rounding alone moves its rows."""
    with tempfile.TemporaryDirectory() as folder:
        recipe.write(Path(folder), seed, expand=True)
        oracle = Oracle(recipe, Path(folder))
        golden = oracle.golden(seed)
        return golden, oracle.rounding(golden["prompt"] + golden["greedy"]["ids"])


def make_clear(recipe: Recipe, first_seed: int) -> dict:
    """The first seed without close calls, with a narrow bound, little sensitivity to rounding and varied
    ids; else the best."""
    best, best_score = None, math.inf
    for seed in range(first_seed, first_seed + SEEDS):
        golden, rounding = make(recipe, seed)
        greedy = golden["greedy"]
        score = (2 * len(greedy["close"]) + (golden["difference"] > WIDE)
                 + (rounding > SENSITIVE) + (len(set(greedy["ids"])) < VARIED))
        if score < best_score:
            best, best_score = golden, score
        if score == 0:
            break
    return best


def to_text(golden: dict) -> str:
    """JSON with one row a line, so that a diff shows which row changed."""
    lines = [f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
             for key, value in golden.items() if key != "rows"]
    rows = ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in golden["rows"])
    return "{\n" + ",\n".join(lines) + ',\n "rows": [\n  ' + rows + "\n ]\n}\n"


def differences(path: str, old, new) -> list[str]:
    """Where two JSON values differ: numbers by the tolerance, all else exactly."""
    if isinstance(old, float) or isinstance(new, float):
        return [] if abs(old - new) <= CHECK_TOLERANCE else [f"{path}: {old} committed, {new} computed"]
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [line for key in old for line in differences(f"{path}.{key}", old[key], new[key])]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [line for i, pair in enumerate(zip(old, new)) for line in differences(f"{path}[{i}]", *pair)]
    return [] if old == new else [f"{path}: {str(old)[:60]} committed, {str(new)[:60]} computed"]


def check(name: str, recipe: Recipe) -> list[str]:
    path = GOLDENS / f"{name}.json"
    if not path.exists():
        return [f"{name}: no golden is committed"]
    committed = json.loads(path.read_text())
    computed, _ = make(recipe, committed["seed"])
    for golden in (committed, computed):
        for key in ("made_with", "difference", "bound"):
            golden.pop(key)
    return differences(name, committed, computed)


def report(golden: dict) -> None:
    print(f"{golden['type']:12} {golden['variant']:24} seed {golden['seed']:4}  cached - whole "
          f"{golden['difference']:.1e}  bound {golden['bound']:.1e}  least margin "
          f"{min(golden['greedy']['margins']):.1e}  close {len(golden['greedy']['close'])}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--seed", type=int, help="the first seed that is tried (default: 1)")
    parser.add_argument("--out", type=Path, help="folder for goldens/ and checkpoints/ of --seed")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.seed is not None and arguments.out is None:
        arguments.out = REPOSITORY / "build" / "oracle" / f"seed-{arguments.seed}"
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.filterwarnings("ignore")
    goldens = arguments.out / "goldens" if arguments.out else GOLDENS
    goldens.mkdir(parents=True, exist_ok=True)
    problems = []
    for name, recipe in recipes().items():
        if arguments.only not in name:
            continue
        try:
            if arguments.check:
                problems += check(name, recipe)
                continue
            golden = make_clear(recipe, arguments.seed or 1)
        except Exception as error:  # the other variants are still made
            problems.append(f"{name}: {type(error).__name__}: {error}")
            print(f"oracle: {problems[-1]}", file=sys.stderr, flush=True)
            continue
        report(golden)
        (goldens / f"{name}.json").write_text(to_text(golden))
        if arguments.out:
            recipe.write(arguments.out / "checkpoints" / name, golden["seed"])
    for problem in problems[:40]:
        print(f"oracle: {problem}", file=sys.stderr)
    print(f"oracle: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
