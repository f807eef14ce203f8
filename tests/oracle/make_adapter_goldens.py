#!/usr/bin/env python3
"""Goldens of the adapters of adapters.py: what PEFT computes in float32 on one thread.

    make_adapter_goldens.py          writes tests/data/goldens/adapters
    make_adapter_goldens.py --check  recomputes and compares; writes nothing

Needs tests/oracle/requirements.txt and the package peft. Format: tests/data/README.md.
"""

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
import peft
import torch
import transformers

from adapters import ADAPTERS, modules_of, write
from checkpoints import GOLDENS, recipes
from make_model_goldens import Oracle, differences, prompt_of, row_json, to_text

OUT = GOLDENS.parent / "adapters"
PROMPT = 48
ROWS = (0, 7, 23, 47)


def check_loading(model, modules: int) -> None:
    """PEFT only warns of matrices that it does not load; those it does not find are zero."""
    ups = [value for key, value in model.named_parameters() if "lora_B" in key]
    assert len(ups) == modules and all(up.abs().max() > 0 for up in ups), (len(ups), modules)


def make(name: str) -> dict:
    adapter = ADAPTERS[name]
    recipe = recipes()[adapter.base]
    seed = json.loads((GOLDENS / f"{adapter.base}.json").read_text())["seed"]
    text = prompt_of("adapter " + name)[:PROMPT]
    with tempfile.TemporaryDirectory() as folder:
        base, lora = Path(folder) / "base", Path(folder) / "lora"
        recipe.write(base, seed, expand=True)
        write(lora, name, adapter, recipe)
        oracle = Oracle(recipe, base)
        plain = [oracle.whole(text[:p + 1]) for p in ROWS]
        oracle.model = peft.PeftModel.from_pretrained(
            oracle.model, str(lora), autocast_adapter_dtype=True).eval()
        check_loading(oracle.model, len(modules_of(adapter, recipe)))
        rows = [oracle.whole(text[:p + 1]) for p in ROWS]
    moved = max((a - b).abs().max().item() for a, b in zip(plain, rows))
    assert moved > 0.1, f"{name} changes too little: {moved}"
    sample = list(range(0, rows[0].numel(), 37))
    return {"adapter": name, "base": adapter.base, "seed": seed,
            "made_with": {"torch": torch.__version__.split("+")[0], "peft": peft.__version__,
                          "transformers": transformers.__version__},
            "moved": round(moved, 4), "prompt": text, "sample": sample,
            "rows": [row_json(p, "whole", row, sample) for p, row in zip(ROWS, rows)]}


def main() -> int:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    warnings.filterwarnings("ignore")
    OUT.mkdir(parents=True, exist_ok=True)
    problems = []
    for name in ADAPTERS:
        golden = make(name)
        path = OUT / f"{name}.json"
        print(f"{name:12} {golden['base']:28} moved {golden['moved']:.2f}", flush=True)
        if "--check" in sys.argv:
            committed = json.loads(path.read_text())
            for one in (committed, golden):
                one.pop("made_with")
            problems += differences(name, committed, json.loads(json.dumps(golden)))
        else:
            path.write_text(to_text(golden))
    for problem in problems:
        print(f"oracle: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
