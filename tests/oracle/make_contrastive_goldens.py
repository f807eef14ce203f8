#!/usr/bin/env python3
"""Contrastive search of HF transformers in float32 on the demo model: tests/data/goldens/contrastive.json.

    make_contrastive_goldens.py            writes the file
    make_contrastive_goldens.py --check    recomputes and compares the ids; writes nothing

Needs a release that still has contrastive search (removed in late 2025): contrastive_requirements.txt.
The prompts are those of demo.json, so run make_goldens.py first. Format: tests/data/README.md.
"""

import argparse
import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.generation import utils as generation

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDENS = REPOSITORY / "tests" / "data" / "goldens"
MODEL = REPOSITORY / "demo" / "model"
SETTINGS = [(0.6, 4), (0.3, 8)]
NEW_TOKENS = 48
PENALTY = 1.3
# A step whose best two scores are closer than this says nothing about correctness.
CLOSE_CALL = 1e-5


class Oracle:
    def __init__(self):
        self.model = AutoModelForCausalLM.from_pretrained(
            MODEL, torch_dtype=torch.float32, attn_implementation="eager").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(MODEL)
        ends = json.loads((MODEL / "generation_config.json").read_text())["eos_token_id"]
        self.ends = ends if isinstance(ends, list) else [ends]

    @torch.no_grad()
    def search(self, prompt: list[int], alpha: float, top_k: int, penalty: float = 1.0) -> dict:
        with Margins() as margins:
            out = self.model.generate(
                torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                penalty_alpha=alpha, top_k=top_k, repetition_penalty=penalty, do_sample=False,
                max_new_tokens=NEW_TOKENS)
        ids = out[0].tolist()[len(prompt):]
        return {"penalty_alpha": alpha, "top_k": top_k, "repetition_penalty": penalty, "ids": ids,
                "finish": "eos" if ids[-1] in self.ends else "length",
                "margin": float(f"{margins.least:.3g}"),
                "text": self.tokenizer.decode(ids, skip_special_tokens=True)}


class Margins:
    """While it is entered: how far the best score of a step lies above the second, at least."""

    def __enter__(self):
        self.least = float("inf")
        self.ranking = generation._ranking_fast
        generation._ranking_fast = self.rank
        return self

    def __exit__(self, *exception):
        generation._ranking_fast = self.ranking

    def rank(self, context_hidden, next_hidden, next_top_k_probs, cosine_matrix_mask, alpha, beam_width):
        context = context_hidden / context_hidden.norm(dim=2, keepdim=True)
        candidates = next_hidden / next_hidden.norm(dim=2, keepdim=True)
        nearest = (context @ candidates.transpose(1, 2)).squeeze(-1).max(-1).values
        scores = ((1 - alpha) * next_top_k_probs.view(-1) - alpha * nearest).sort(descending=True).values
        self.least = min(self.least, (scores[0] - scores[1]).item())
        return self.ranking(context_hidden, next_hidden, next_top_k_probs, cosine_matrix_mask, alpha,
                            beam_width)


def golden() -> dict:
    oracle = Oracle()
    demo = json.loads((GOLDENS / "demo.json").read_text())
    prompts = [(case["name"], case["ids"]) for case in demo["cases"]]
    longest = max((ids for _, ids in prompts), key=len)
    # Prompts that end just before, at and after the edge of a block of 16.
    prompts += [(f"edge {length}", longest[:length]) for length in (15, 16, 17, 48)]
    cases = []
    for name, ids in prompts:
        runs = [oracle.search(ids, alpha, k) for alpha, k in SETTINGS]
        runs.append(oracle.search(ids, *SETTINGS[0], PENALTY))
        cases.append({"name": name, "ids": ids, "runs": runs})
    return {"model": "demo/model", "dtype": "float32", "sha256": demo["sha256"],
            "made_with": {"torch": torch.__version__.split("+")[0],
                          "transformers": transformers.__version__},
            "cases": cases}


def drop_close_calls(result: dict) -> dict:
    for case in result["cases"]:
        for run in [run for run in case["runs"] if run["margin"] < CLOSE_CALL]:
            print(f"oracle: contrastive: {case['name']}, alpha {run['penalty_alpha']}: dropped, margin "
                  f"{run['margin']}")
            case["runs"].remove(run)
    return result


def to_text(result: dict) -> str:
    head = {key: value for key, value in result.items() if key != "cases"}
    lines = [json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in result["cases"]]
    return json.dumps(head, indent=1)[:-2] + ',\n "cases": [\n' + ",\n".join(lines) + "\n]}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    result = drop_close_calls(golden())
    path = GOLDENS / "contrastive.json"
    if not arguments.check:
        path.write_text(to_text(result))
        print(f"oracle: contrastive: {len(result['cases'])} cases")
        return 0

    def ids(of: dict) -> list:
        return [[run["ids"] for run in case["runs"]] for case in of["cases"]]

    if ids(json.loads(path.read_text())) == ids(result):
        return 0
    print("contrastive: other ids than committed")
    return 1


if __name__ == "__main__":
    sys.exit(main())
