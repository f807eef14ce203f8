#!/usr/bin/env python3
"""Tiny random checkpoints of every model type, written without torch and without NumPy.

    checkpoints.py FOLDER [--goldens DIR] [--only TEXT]

writes one folder per golden of DIR (default: tests/data/goldens/models), with the seed of that golden.

A recipe is the file in recipes/ that is named after its model type. Its VARIANTS is a dictionary of
Variant, and its `tensors(t, config)` names every tensor of the checkpoint. The values come from MT19937,
seeded by the seed and the name of the tensor, so they are the same on every machine.
See tests/data/README.md.
"""

import argparse
import importlib.util
import json
import math
import random
import struct
import sys
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from quantized import E4M3, E4M3_RMS, MAKERS, float32_bytes

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
GOLDENS = DATA / "goldens" / "models"
TOKENIZER = DATA / "models" / "llama"
BOS, END = 256, 257
COMMON = {"bos_token_id": BOS, "eos_token_id": END, "vocab_size": 260, "use_cache": True}
DTYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


@dataclass
class Variant:
    config: dict  # of config.json; COMMON is added
    dtype: str = "float32"
    files: int = 1  # more than one: with an index
    stray_file: str = ""  # a weight file that the index, or its absence, does not name
    options: dict = field(default_factory=dict)  # for the recipe's tensors()
    # Keys of config.json that transformers must see otherwise, or its class, where it cannot read the folder.
    oracle: dict = field(default_factory=dict)
    oracle_class: str = "AutoModelForCausalLM"
    attention: str = "eager"  # of transformers
    world2: bool = True  # two ranks can divide the model
    # The frequencies of RoPE depend on the length of the text: "whole" (longrope: all is computed again)
    # or "step" (dynamic: each step uses its own length).
    length_rule: str = ""
    original_length: int = 0  # with a length_rule: the longest text that is not affected
    todo: str = ""  # why the shard does not serve this variant of a type that it serves


@dataclass
class Tensor:
    shape: tuple
    mean: float = 0.0
    std: float = 1.0
    encoding: str = ""  # "" = the variant's dtype; F32, I64, fp8, mxfp4, or a maker of quantized.py
    surplus: bool = False  # not part of the text model
    block: int = 0  # fp8: rows and columns with one scale
    scale: str = "F32"  # fp8: the type of the scales; BF16 or F8_E8M0
    form: dict = field(default_factory=dict)  # options of a maker in quantized.py


class Tensors(dict):
    """The tensors of a checkpoint by name. The methods choose sizes of values that suit each kind."""

    def __init__(self, prefix: str = "", store: dict | None = None, linear: dict | None = None):
        super().__init__()
        self.prefix = prefix
        self.store = self if store is None else store
        self.linear_options = linear or {}  # of Tensor, for linear layers

    def at(self, prefix: str) -> "Tensors":
        return Tensors(self.prefix + prefix, self.store, self.linear_options)

    def fp8(self, block: int, scale: str = "F32") -> "Tensors":
        """Linear layers are quantised."""
        return Tensors(self.prefix, self.store,
                       {"encoding": "fp8", "block": block, "scale": scale})

    def quantized(self, encoding: str, **form) -> "Tensors":
        """Linear layers are stored by a maker of quantized.py."""
        return Tensors(self.prefix, self.store, {"encoding": encoding, "form": form})

    def add(self, name: str, shape, mean: float = 0.0, std: float = 1.0, **more) -> None:
        assert self.prefix + name not in self.store, name
        self.store[self.prefix + name] = Tensor(tuple(shape), mean, std, **more)

    def linear(self, name: str, rows: int, columns: int, bias: bool = False, gain: float = 1.5) -> None:
        self.add(name + ".weight", (rows, columns), std=gain / math.sqrt(columns),
                 **self.linear_options)
        if bias:
            self.add(name + ".bias", (rows,), std=0.3)

    def transposed(self, name: str, rows: int, columns: int) -> None:
        """A Conv1D of GPT-2: [in, out] with a bias."""
        self.add(name + ".weight", (columns, rows), std=1.5 / math.sqrt(columns))
        self.add(name + ".bias", (rows,), std=0.3)

    def norm(self, name: str, size: int, bias: bool = False, around: float = 1.0) -> None:
        """`around` 0: a norm that multiplies by 1 + weight."""
        self.add(name + ".weight", (size,), around, 0.2)
        if bias:
            self.add(name + ".bias", (size,), std=0.2)

    def embedding(self, name: str, rows: int, columns: int, std: float = 0.3) -> None:
        self.add(name + ".weight", (rows, columns), std=std)

    def head(self, config: dict, name: str = "lm_head", std: float = 1.5) -> None:
        if not config.get("tie_word_embeddings", False):
            columns = config.get("hidden_size") or config["n_embd"]
            self.add(name + ".weight", (config["vocab_size"], columns), std=std / math.sqrt(columns))

    def attention(self, config: dict, qkv_bias: bool = False, out_bias: bool = False) -> None:
        hidden, heads = config["hidden_size"], config["num_attention_heads"]
        head_dim = config.get("head_dim") or hidden // heads
        kv_heads = config.get("num_key_value_heads") or heads
        self.linear("self_attn.q_proj", heads * head_dim, hidden, qkv_bias)
        self.linear("self_attn.k_proj", kv_heads * head_dim, hidden, qkv_bias)
        self.linear("self_attn.v_proj", kv_heads * head_dim, hidden, qkv_bias)
        self.linear("self_attn.o_proj", hidden, heads * head_dim, out_bias)

    def gated_mlp(self, name: str, width: int, hidden: int, bias: bool = False) -> None:
        self.linear(name + ".gate_proj", width, hidden, bias)
        self.linear(name + ".up_proj", width, hidden, bias)
        self.linear(name + ".down_proj", hidden, width, bias)

    def experts(self, name: str, count: int, width: int, hidden: int, fused: bool) -> None:
        """One by one, or as two tensors [count, ...]; gate rows come before up rows."""
        if fused:
            self.add(name + ".gate_up_proj", (count, 2 * width, hidden), std=1.5 / math.sqrt(hidden))
            self.add(name + ".down_proj", (count, hidden, width), std=1.5 / math.sqrt(width))
            return
        for i in range(count):
            self.gated_mlp(f"{name}.{i}", width, hidden)

    def surplus(self, name: str, shape=(4, 4)) -> None:
        self.add(name, shape, surplus=True)


# ---- values ----

def normal_values(source: random.Random, count: int, mean: float, std: float) -> list:
    """Sums of four uniform 16-bit numbers: close to a normal distribution, and fast."""
    words = array("H", source.randbytes(8 * count))
    if sys.byteorder == "big":
        words.byteswap()
    each = iter(words)
    scale = std / (65536 * math.sqrt(4 / 12))
    shift = mean - 131070 * scale
    return [(a + b + c + d) * scale + shift for a, b, c, d in zip(each, each, each, each)]


def encode(values: list, encoding: str) -> bytes:
    if encoding == "F32":
        return float32_bytes(values)
    if encoding == "F16":
        return struct.pack(f"<{len(values)}e", *values)
    if encoding == "I64":
        return struct.pack(f"<{len(values)}q", *(int(value) for value in values))
    assert encoding == "BF16", encoding
    raw = float32_bytes(values)  # cut off, not rounded
    halves = bytearray(2 * len(values))
    halves[0::2], halves[1::2] = raw[2::4], raw[3::4]
    return bytes(halves)


E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]
E2M1_RMS = math.sqrt(sum(value ** 2 for value in E2M1) / 16)


def make_scales(source: random.Random, count: int, around: float, encoding: str) -> tuple[bytes, list]:
    """The stored bytes and their exact values."""
    if encoding == "F8_E8M0":
        power = math.floor(math.log2(around))
        stored = bytes(127 + power + source.randrange(2) for _ in range(count))
        return stored, [2.0 ** (byte - 127) for byte in stored]
    stored = encode([around * (0.5 + source.random()) for _ in range(count)], encoding)
    if encoding == "F32":
        return stored, list(struct.unpack(f"<{count}f", stored))
    padded = b"".join(b"\0\0" + stored[i:i + 2] for i in range(0, len(stored), 2))
    return stored, list(struct.unpack(f"<{count}f", padded))


def make_fp8(source: random.Random, name: str, tensor: Tensor, expand: bool) -> dict:
    """NAME F8_E4M3 [N, K] and NAME_scale_inv [ceil N/block, ceil K/block]: weight = value x scale."""
    rows, columns = tensor.shape
    block = tensor.block
    grid = (-(-rows // block), -(-columns // block))
    values = bytes(b & 0xBF if b & 127 == 127 else b for b in source.randbytes(rows * columns))
    stored, scales = make_scales(source, grid[0] * grid[1], tensor.std / E4M3_RMS, tensor.scale)
    if not expand:
        return {name: ("F8_E4M3", tensor.shape, values), name + "_scale_inv": (tensor.scale, grid, stored)}
    whole = [E4M3[values[n * columns + k]] * scales[n // block * grid[1] + k // block]
             for n in range(rows) for k in range(columns)]
    return {name: ("F32", tensor.shape, float32_bytes(whole))}


def make_mxfp4(source: random.Random, name: str, tensor: Tensor, expand: bool) -> dict:
    """NAME_blocks U8 [E, N, K/32, 16], low nibble first, and NAME_scales U8 [E, N, K/32].
    Expanded: NAME [E, K, N], as the class of transformers has it."""
    experts, rows, columns = tensor.shape
    groups = columns // 32
    blocks = source.randbytes(experts * rows * columns // 2)
    power = math.floor(math.log2(tensor.std / E2M1_RMS))
    scales = bytes(127 + power + source.randrange(2) for _ in range(experts * rows * groups))
    if not expand:
        return {name + "_blocks": ("U8", (experts, rows, groups, 16), blocks),
                name + "_scales": ("U8", (experts, rows, groups), scales)}
    values = [E2M1[(byte >> shift) & 15] for byte in blocks for shift in (0, 4)]
    values = [value * 2.0 ** (scales[i // 32] - 127) for i, value in enumerate(values)]
    turned = [values[(e * rows + n) * columns + k]
              for e in range(experts) for k in range(columns) for n in range(rows)]
    return {name: ("F32", (experts, columns, rows), float32_bytes(turned))}


def make_tensor(seed: int, name: str, tensor: Tensor, dtype: str, expand: bool) -> dict:
    """The stored tensors by name: type, shape, bytes."""
    source = random.Random(f"{seed} {name}")
    if tensor.encoding == "fp8":
        return make_fp8(source, name, tensor, expand)
    if tensor.encoding == "mxfp4":
        return make_mxfp4(source, name, tensor, expand)
    if tensor.encoding in MAKERS:
        stored, values = MAKERS[tensor.encoding](source, name, tensor.shape, tensor.std, **tensor.form)
        return {name: ("F32", tensor.shape, float32_bytes(values))} if expand else stored
    encoding = tensor.encoding or DTYPES[dtype]
    values = normal_values(source, math.prod(tensor.shape), tensor.mean, tensor.std)
    return {name: (encoding, tensor.shape, encode(values, encoding))}


# ---- files ----

def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_safetensors(path: Path, stored: dict) -> None:
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, (encoding, shape, data) in stored.items():
        header[name] = {"dtype": encoding, "shape": list(shape), "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in stored.values():
            file.write(data)


def write_weights(folder: Path, stored: dict, files: int) -> None:
    if files == 1:
        write_safetensors(folder / "model.safetensors", stored)
        return
    names, weight_map = list(stored), {}
    for i in range(files):
        file = f"model-{i + 1:05d}-of-{files:05d}.safetensors"
        part = names[i * len(names) // files:(i + 1) * len(names) // files]
        write_safetensors(folder / file, {name: stored[name] for name in part})
        weight_map |= dict.fromkeys(part, file)
    total = sum(len(data) for _, _, data in stored.values())
    write_json(folder / "model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": weight_map})


class Recipe:
    """One variant of a model type."""

    def __init__(self, model_type: str, name: str, variant: Variant, module):
        self.model_type, self.name, self.variant, self.module = model_type, name, variant, module
        self.config = COMMON | variant.config

    def tensors(self) -> Tensors:
        made = Tensors()
        self.module.tensors(made, self.config, **self.variant.options)
        return made

    def write(self, folder: Path, seed: int, expand: bool = False) -> None:
        """`expand`: for transformers. Quantised tensors are float32, and surplus ones are absent."""
        variant = self.variant
        folder.mkdir(parents=True, exist_ok=True)
        config = self.config | (variant.oracle if expand else {})
        if expand:
            config.pop("quantization_config", None)
        write_json(folder / "config.json", {key: value for key, value in config.items() if value is not ...})
        write_json(folder / "generation_config.json",
                   {"bos_token_id": BOS, "do_sample": False, "eos_token_id": END})
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (folder / name).write_bytes((TOKENIZER / name).read_bytes())
        stored = {}
        for name, tensor in self.tensors().items():
            if tensor.surplus and expand:
                continue
            stored |= make_tensor(seed, name, tensor, variant.dtype, expand)
        write_weights(folder, stored, variant.files)
        if variant.stray_file and not expand:
            write_safetensors(folder / variant.stray_file, {"stray.weight": ("F32", (1,), bytes(4))})
        write_json(folder / "test.json", {
            "world2": variant.world2, "todo": variant.todo, "length_rule": variant.length_rule,
            "original_length": variant.original_length})


def recipes() -> dict:
    """Every variant by its name, TYPE-VARIANT."""
    found = {}
    sys.path.insert(0, str(HERE))
    for path in sorted((HERE / "recipes").glob("*.py")):
        spec = importlib.util.spec_from_file_location("recipe_" + path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, variant in module.VARIANTS.items():
            found[f"{path.stem}-{name}"] = Recipe(path.stem, name, variant, module)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--goldens", type=Path, default=GOLDENS)
    parser.add_argument("--only", default="", help="names that contain this")
    arguments = parser.parse_args()
    known = recipes()
    goldens = {path.stem: path for path in sorted(arguments.goldens.glob("*.json"))}
    for name in sorted(known.keys() ^ goldens.keys()):
        what = "no golden: run make oracle" if name in known else "no recipe: delete its golden"
        print(f"checkpoints: {name} has {what}", file=sys.stderr)
    if known.keys() != goldens.keys():
        return 1
    for name, path in goldens.items():
        if arguments.only in name:
            known[name].write(arguments.folder / name, json.loads(path.read_text())["seed"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
