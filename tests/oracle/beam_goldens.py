"""Beam searches of HF transformers with the demo model in float32: the reference for router/dispatch/beam_search.h.

A case is kept only if the scores of its texts are GAP apart, so that rounding cannot decide their order.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "demo" / "model"
GOLDEN = ROOT / "tests" / "data" / "goldens" / "beams.json"
SEED = 26
CASES = 60
GAP = 4e-3

BEGINNINGS = ("Once upon a time", "The dog", "Tom and Lily went to the park", "One day, a little girl named Sue",
              "There was a big red ball", "Mom said", "\"Can we play?\" asked Ben", "It was raining",
              "The cat sat on the mat. Then", "In the forest lived a bear")
ENDS = ("", " and", " who", ". She", ". They were very", " with a")


def search(model, ids: list[int], case: dict) -> tuple[list[list[int]], list[float]]:
    """The new ids of each text, with the token that ended it, and the scores."""
    out = model.generate(
        torch.tensor([ids]), attention_mask=torch.ones((1, len(ids)), dtype=torch.long), do_sample=False,
        num_beams=case["width"], num_return_sequences=case["width"], max_new_tokens=case["max_tokens"],
        length_penalty=case["length_penalty"], early_stopping=case["early_stopping"], return_dict_in_generate=True,
        output_scores=True)
    ends = model.generation_config.eos_token_id
    texts = []
    for sequence in out.sequences[:, len(ids):].tolist():
        end = next((i + 1 for i, token in enumerate(sequence) if token in ends), len(sequence))
        texts.append(sequence[:end])
    return texts, out.sequences_scores.tolist()


def goldens() -> dict:
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, attn_implementation="eager").eval()
    source = np.random.RandomState(SEED)
    cases = []
    while len(cases) < CASES:
        case = {"prompt": str(source.choice(BEGINNINGS)) + str(source.choice(ENDS)),
                "width": int(source.choice((2, 3, 4, 6))),
                "max_tokens": int(source.choice((1, 4, 12, 40))),
                "length_penalty": float(source.choice((-1.0, 0.0, 0.5, 1.0, 1.0, 2.0))),
                "early_stopping": (False, True, "never")[source.randint(3)]}
        ids = tokenizer(case["prompt"])["input_ids"]
        texts, scores = search(model, ids, case)
        if min(np.diff(scores[::-1])) < GAP:
            continue
        whole = [tokenizer.decode(ids + text, skip_special_tokens=True) for text in texts]
        begin = len(tokenizer.decode(ids, skip_special_tokens=True))
        cases.append(case | {"ids": ids, "lengths": [len(text) for text in texts],
                             "texts": [text[begin:] for text in whole],
                             "scores": [float(f"{score:.6g}") for score in scores]})
    return {"model": "demo/model", "cases": cases}


def main() -> int | str:
    golden = "{\n" + ",\n".join(
        f'"{key}": ' + (json.dumps(value) if key != "cases" else
                        "[\n" + ",\n".join(json.dumps(case) for case in value) + "\n]")
        for key, value in goldens().items()) + "\n}\n"
    if "--check" in sys.argv:
        return 0 if GOLDEN.read_text() == golden else f"{GOLDEN} differs"
    GOLDEN.write_text(golden)
    return 0


if __name__ == "__main__":
    sys.exit(main())
