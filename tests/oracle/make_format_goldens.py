#!/usr/bin/env python3
"""Goldens of quantised matrices: random tensors, and what each format's own library expands them to.

    make_format_goldens.py          writes tests/data/goldens/formats
    make_format_goldens.py --check  recomputes and compares; writes nothing

Needs compressed-tensors and bitsandbytes beside torch and transformers. AWQ and GPTQ are not here: their
test expands them on its own. Format: tests/data/README.md.
"""

import argparse
import base64
import json
import sys
from pathlib import Path

import bitsandbytes.functional as bnb
import torch
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.compressors.nvfp4 import NVFP4PackedCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from transformers.integrations.finegrained_fp8 import Fp8Dequantize
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

GOLDENS = Path(__file__).resolve().parents[1] / "data" / "goldens" / "formats"
TYPES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.uint8: "U8",
         torch.int8: "I8", torch.int32: "I32", torch.int64: "I64", torch.float8_e4m3fn: "F8_E4M3",
         torch.float8_e8m0fnu: "F8_E8M0"}
NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def raw(tensor: torch.Tensor) -> str:
    flat = tensor.detach().contiguous().reshape(-1)
    return base64.b64encode(flat.view(torch.uint8).numpy().tobytes()).decode()


def golden(config: dict, tensors: dict, expanded: torch.Tensor) -> dict:
    """`expanded` [N, K] or, of a stack, [E, N, K]."""
    return {"quantization_config": config, "shape": list(expanded.shape),
            "tensors": [{"name": name, "type": TYPES[t.dtype], "shape": list(t.shape), "data": raw(t)}
                        for name, t in tensors.items()],
            "dtype": NAMES[expanded.dtype], "expanded": raw(expanded)}


def fp8_values(*shape) -> torch.Tensor:
    values = (torch.randn(shape) * 40).to(torch.float8_e4m3fn)
    assert torch.isfinite(values.float()).all()
    return values


# ---- FP8 and MXFP4, by transformers ----

def fp8(shape: tuple, scales: torch.Tensor, block, dtype: torch.dtype) -> dict:
    values = fp8_values(*shape)
    config = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": block}
    expanded = Fp8Dequantize(None)._dequantize_one(values, scales, output_dtype=dtype)
    return golden(config, {"m.weight": values, "m.weight_scale_inv": scales}, expanded)


def fbgemm(shape: tuple) -> dict:
    values, scales = fp8_values(*shape), torch.rand(shape[0], 1)
    return golden({"quant_method": "fbgemm_fp8"}, {"m.weight": values, "m.weight_scale": scales},
                  values.float() * scales)


def mxfp4() -> dict:
    blocks = torch.randint(0, 256, (2, 5, 3, 16), dtype=torch.uint8)
    scales = torch.randint(110, 140, (2, 5, 3), dtype=torch.uint8)
    # transformers gives [E, K, N].
    expanded = convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16).transpose(1, 2)
    return golden({"quant_method": "mxfp4"}, {"m.weight_blocks": blocks, "m.weight_scales": scales},
                  expanded.contiguous())


# ---- compressed-tensors ----

def group_shape(shape: tuple, weights: dict) -> tuple:
    rows, columns = shape
    strategy = weights["strategy"]
    if strategy == "tensor":
        return (1,)
    if strategy == "channel":
        return rows, 1
    if strategy == "block":
        down, across = weights["block_structure"]
        return -(-rows // down), -(-columns // across)
    return rows, columns // weights["group_size"]


def compressed(form: str, shape: tuple, dtype: torch.dtype, **weights) -> dict:
    args = QuantizationArgs(**weights)
    scheme = QuantizationScheme(targets=["Linear"], weights=args, format=form)
    grid = group_shape(shape, weights)
    state = {"weight": torch.randn(shape, dtype=torch.float32).to(dtype),
             "weight_scale": (torch.rand(grid) * 0.05 + 0.02).to(dtype)}
    if not args.symmetric:
        middle = 2 ** (args.num_bits - 1)
        state["weight_zero_point"] = torch.randint(-middle, middle, grid, dtype=torch.int8)
    if form == "nvfp4-pack-quantized":
        state["weight_scale"] = (torch.rand(grid) * 200 + 50).to(torch.float8_e4m3fn).to(dtype)
        state["weight_global_scale"] = torch.tensor([431.7])
    compressor = BaseCompressor.get_value_from_registry(form)
    stored = compressor.compress(dict(state), scheme)
    # The values do not matter, only how they are read: all of them, at random.
    scramble(stored, form)
    expanded = compressor.decompress(dict(stored), scheme)["weight"].detach()
    config = {"quant_method": "compressed-tensors", "format": form,
              "quantization_status": "compressed", "ignore": ["lm_head"],
              "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}
    return golden(config, {"m." + name: t.detach() for name, t in stored.items()}, expanded)


def scramble(stored: dict, form: str) -> None:
    if form == "int-quantized":
        stored["weight"] = torch.randint(-128, 128, stored["weight"].shape, dtype=torch.int8)
    elif form == "float-quantized":
        stored["weight"] = fp8_values(*stored["weight"].shape)
    elif "fp4" in form:
        packed = stored["weight_packed"]
        stored["weight_packed"] = torch.randint(0, 256, packed.shape, dtype=torch.uint8)


# ---- bitsandbytes ----

def four_bits(kind: str, shape: tuple, nested: bool, dtype: torch.dtype, block: int) -> dict:
    values, state = bnb.quantize_4bit(torch.randn(shape).to(dtype), blocksize=block, quant_type=kind,
                                      compress_statistics=nested)
    stored = {"m.weight": values}
    stored |= {"m.weight." + name: t for name, t in state.as_dict(packed=True).items()}
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": kind,
              "bnb_4bit_use_double_quant": nested}
    return golden(config, stored, bnb.dequantize_4bit(values, state))


def int8(shape: tuple) -> dict:
    values, largest, _ = bnb.int8_vectorwise_quant(torch.randn(shape).half())
    stored = {"m.weight": values, "m.SCB": largest,
              "m.weight_format": torch.tensor(0, dtype=torch.uint8)}
    return golden({"quant_method": "bitsandbytes", "load_in_8bit": True}, stored,
                  bnb.int8_vectorwise_dequant(values, largest))


def cases():
    f32, bf16 = torch.float32, torch.bfloat16
    group = {"type": "int", "strategy": "group"}
    yield "fp8_block", lambda: fp8((12, 40), torch.rand(3, 5), [4, 8], f32)
    yield "fp8_block_bf16", lambda: fp8((12, 40), torch.rand(3, 5).to(bf16), [4, 8], bf16)
    yield "fp8_block_e8m0", lambda: fp8(
        (12, 40), (2.0 ** torch.randint(-9, 9, (3, 5))).to(torch.float8_e8m0fnu), [4, 8], bf16)
    yield "fp8_tensor", lambda: fp8((11, 37), torch.tensor(0.0371), None, f32)
    yield "fbgemm_fp8", lambda: fbgemm((11, 37))
    yield "mxfp4", mxfp4
    for bits in (4, 8):
        for symmetric in (True, False):
            kind = f"pack{bits}_{'symmetric' if symmetric else 'zeros'}"
            yield kind + "_group", lambda b=bits, s=symmetric: compressed(
                "pack-quantized", (13, 48), f32, num_bits=b, symmetric=s, group_size=16, **group)
            yield kind + "_channel", lambda b=bits, s=symmetric: compressed(
                "pack-quantized", (13, 43), bf16, num_bits=b, symmetric=s, type="int",
                strategy="channel")
    yield "pack4_symmetric_tensor", lambda: compressed(
        "pack-quantized", (11, 43), f32, num_bits=4, symmetric=True, type="int", strategy="tensor")
    for strategy in ("tensor", "channel"):
        yield f"int8_{strategy}", lambda s=strategy: compressed(
            "int-quantized", (11, 43), f32, num_bits=8, symmetric=True, type="int", strategy=s)
        yield f"float8_{strategy}", lambda s=strategy: compressed(
            "float-quantized", (11, 43), bf16, num_bits=8, symmetric=True, type="float", strategy=s)
    yield "int8_zeros_channel", lambda: compressed(
        "int-quantized", (11, 43), f32, num_bits=8, symmetric=False, type="int", strategy="channel")
    yield "float8_block", lambda: compressed(
        "float-quantized", (12, 40), f32, num_bits=8, symmetric=True, type="float", strategy="block",
        block_structure=[4, 8])
    yield "nvfp4", lambda: compressed(
        "nvfp4-pack-quantized", (13, 48), bf16, num_bits=4, symmetric=True, type="float",
        strategy="tensor_group", group_size=16)
    for kind in ("nf4", "fp4"):
        yield kind, lambda k=kind: four_bits(k, (13, 43), False, f32, 64)
        yield kind + "_bf16", lambda k=kind: four_bits(k, (13, 43), False, bf16, 64)
    yield "nf4_double", lambda: four_bits("nf4", (9, 44), True, f32, 64)
    yield "bitsandbytes_int8", lambda: int8((11, 43))


def text_of(made: dict) -> str:
    """A line for each tensor, so that a diff shows which one changed."""
    lines = [f" {json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
             for key, value in made.items() if key != "tensors"]
    tensors = ",\n  ".join(json.dumps(t, separators=(",", ":")) for t in made["tensors"])
    return "{\n" + ",\n".join(lines) + ',\n "tensors": [\n  ' + tensors + "\n ]\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    GOLDENS.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for number, (name, make) in enumerate(cases()):
        torch.manual_seed(number)
        text, path = text_of(make()), GOLDENS / f"{name}.json"
        assert len(text) <= 8192, (name, len(text))
        if not arguments.check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"oracle: {name} differs", file=sys.stderr)
            wrong += 1
    print(f"oracle: {wrong} format goldens differ" if arguments.check else "oracle: formats written")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
