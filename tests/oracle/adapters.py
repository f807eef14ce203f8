#!/usr/bin/env python3
"""LoRA adapters for the tiny checkpoints, written as PEFT writes them but without PEFT and torch.

    adapters.py FOLDER

writes one folder per adapter of ADAPTERS. The values come from MT19937, seeded by the names of
adapter and tensor. tests/oracle/make_adapter_goldens.py computes what PEFT makes of them.
"""

import json
import math
import random
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from checkpoints import DTYPES, GOLDENS, Recipe, encode, normal_values, recipes, write_json, write_safetensors

PREFIX = "base_model.model."


@dataclass
class Adapter:
    base: str  # TYPE-VARIANT of the checkpoint
    config: dict  # of adapter_config.json; COMMON is added
    modules: str  # a regular expression of their ends, of those in the checkpoint
    dtype: str = "float32"
    prefix: str = ""  # what the class of transformers adds to the names of the checkpoint
    extra: dict = field(default_factory=dict)  # modules that the checkpoint does not name: [rows, columns]


COMMON = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "bias": "none", "inference_mode": True,
          "base_model_name_or_path": "tiny", "lora_dropout": 0.05, "fan_in_fan_out": False,
          "init_lora_weights": True, "modules_to_save": None, "use_dora": False}
FUSED = "phi3-v4_su_crossing"
ADAPTERS = {
    "fused": Adapter(FUSED, {
        "r": 4, "lora_alpha": 8, "target_modules": ["qkv_proj", "gate_up_proj"]},
        "qkv_proj|gate_up_proj"),
    "rslora": Adapter(FUSED, {
        "r": 8, "lora_alpha": 4, "use_rslora": True, "target_modules": "all-linear"},
        "qkv_proj|o_proj|gate_up_proj|down_proj", "bfloat16"),
    "patterns": Adapter(FUSED, {
        "r": 3, "lora_alpha": 6, "target_modules": r".*layers\.[02]\..*_proj|lm_head",
        "rank_pattern": {"qkv_proj": 5, "layers.2.mlp.down_proj": 2},
        "alpha_pattern": {r"^.*layers\.0\.mlp\.gate_up_proj": 3, "o_proj": 9}},
        r"layers\.[02]\..*_proj|lm_head"),
    "separate": Adapter("llama-v5_biases", {
        "r": 2, "lora_alpha": 5, "target_modules": ["q_proj", "v_proj", "up_proj", "down_proj"]},
        "q_proj|v_proj|up_proj|down_proj"),
    "by_head": Adapter("gpt_neox-v5_sequential", {
        "r": 4, "lora_alpha": 8, "target_modules": ["query_key_value", "dense_h_to_4h"]},
        "query_key_value|dense_h_to_4h"),
    "conv1d": Adapter("gpt2-v4_bare", {
        "r": 4, "lora_alpha": 8, "fan_in_fan_out": True,
        "target_modules": ["c_attn", "c_fc", "mlp.c_proj", "lm_head"]},
        r"c_attn|c_fc|mlp\.c_proj", "float16", "transformer.", {"lm_head": (260, 32)}),
}


def modules_of(adapter: Adapter, recipe: Recipe) -> dict:
    """Shapes [rows, columns] by the names in the class of transformers."""
    found = dict(adapter.extra)
    for name, tensor in recipe.tensors().items():
        stem = name.removesuffix(".weight")
        if stem == name or not re.search(f"(^|\\.)({adapter.modules})$", stem):
            continue
        shape = tensor.shape[::-1] if adapter.config.get("fan_in_fan_out") else tensor.shape
        found[adapter.prefix + stem] = shape
    return found


def rank_of(adapter: Adapter, module: str) -> int:
    for pattern, rank in adapter.config.get("rank_pattern", {}).items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return rank
    return adapter.config["r"]


def write(folder: Path, name: str, adapter: Adapter, recipe: Recipe) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "adapter_config.json", COMMON | adapter.config)
    stored, encoding = {}, DTYPES[adapter.dtype]
    for module, (rows, columns) in modules_of(adapter, recipe).items():
        rank = rank_of(adapter, module)
        for part, shape, std in (("lora_A", (rank, columns), 1 / math.sqrt(columns)),
                                 ("lora_B", (rows, rank), 0.3)):
            source = random.Random(f"{name} {module} {part}")
            values = normal_values(source, shape[0] * shape[1], 0.0, std)
            stored[f"{PREFIX}{module}.{part}.weight"] = (encoding, shape, encode(values, encoding))
    write_safetensors(folder / "adapter_model.safetensors", stored)


def main() -> int:
    known = recipes()
    for name, adapter in ADAPTERS.items():
        write(Path(sys.argv[1]) / name, name, adapter, known[adapter.base])
        seed = json.loads((GOLDENS / f"{adapter.base}.json").read_text())["seed"]
        base = Path(sys.argv[1]) / name / "base.json"
        write_json(base, {"base": adapter.base, "seed": seed})
    return 0


if __name__ == "__main__":
    sys.exit(main())
