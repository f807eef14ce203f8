"""The table of models in docs/sizing.md is what `penstock fit` computes.

Each model has the shape of a published one. Its safetensors file has a header and a sparse body, since fit reads no
weights. To update the page: PENSTOCK_UPDATE_DOCS=1 pytest tests/integration/test_sizing_page.py
"""

import json
import math
import os
import pathlib
import re
import subprocess

import pytest
from penstock_testing import BIN

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "sizing.md"
BEGIN, END = "<!-- fit: begin -->\n", "<!-- fit: end -->\n"

# name: (type, layers, hidden, heads, K/V heads, head size, columns of the MLP, vocabulary, tied)
MODELS = {
    "SmolLM2-135M": ("llama", 30, 576, 9, 3, 64, 1536, 49152, True),
    "Qwen3-0.6B": ("qwen3", 28, 1024, 16, 8, 128, 3072, 151936, True),
    "TinyLlama-1.1B": ("llama", 22, 2048, 32, 4, 64, 5632, 32000, False),
    "Llama-3.2-3B": ("llama", 28, 3072, 24, 8, 128, 8192, 128256, True),
    "Llama-3.1-8B": ("llama", 32, 4096, 32, 8, 128, 14336, 128256, False),
    "Qwen3-14B": ("qwen3", 40, 5120, 40, 8, 128, 17408, 151936, False),
    "Qwen3-32B": ("qwen3", 64, 5120, 64, 8, 128, 25600, 151936, False),
}
OPTIONS = {"bfloat16": [], "int8": ["--quantize", "int8"]}
TEXTS = (2048, 8192)


def tensors(shape):
    kind, layers, hidden, heads, kv_heads, size, columns, vocabulary, tied = shape
    yield "model.embed_tokens.weight", [vocabulary, hidden]
    yield "model.norm.weight", [hidden]
    if not tied:
        yield "lm_head.weight", [vocabulary, hidden]
    for layer in range(layers):
        at = f"model.layers.{layer}."
        for norm in ("input_layernorm", "post_attention_layernorm"):
            yield f"{at}{norm}.weight", [hidden]
        for name, heads_of in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            yield f"{at}self_attn.{name}_proj.weight", [heads_of * size, hidden]
        yield f"{at}self_attn.o_proj.weight", [hidden, heads * size]
        for name in ("q", "k") if kind == "qwen3" else ():
            yield f"{at}self_attn.{name}_norm.weight", [size]
        for name in ("gate", "up"):
            yield f"{at}mlp.{name}_proj.weight", [columns, hidden]
        yield f"{at}mlp.down_proj.weight", [hidden, columns]


def make_folder(folder, shape):
    """Writes a checkpoint; the weights are a sparse part of its file."""
    folder.mkdir()
    kind, layers, hidden, heads, kv_heads, size, columns, vocabulary, tied = shape
    config = {
        "architectures": ["Qwen3ForCausalLM" if kind == "qwen3" else "LlamaForCausalLM"], "model_type": kind,
        "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "head_dim": size, "intermediate_size": columns, "vocab_size": vocabulary,
        "tie_word_embeddings": tied, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
        "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": 1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    header, end = {}, 0
    for name, sizes in tensors(shape):
        begin, end = end, end + 2 * math.prod(sizes)
        header[name] = {"dtype": "BF16", "shape": sizes, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return folder


def fit(folder, *options):
    done = subprocess.run([BIN / "penstock", "fit", folder, "--memory", "1024GiB", "--cpu-weights", "plain", *options],
                          capture_output=True, text=True, timeout=120, env={**os.environ, "PENSTOCK_ISA": "avx2"})
    assert done.returncode == 0, done.stdout + done.stderr
    rows = dict(re.findall(r"^ +(weights|K/V per token) +(.+)$", done.stdout, re.MULTILINE))
    assert len(rows) == 2, done.stdout
    return rows


def size_in_bytes(text):
    number, unit = text.split()
    return float(number) * 1024 ** ["B", "KiB", "MiB", "GiB"].index(unit)


def table(tmp_path):
    names = ["Model", "Weights, bfloat16", "Weights, int8", "K/V of a token",
             *(f"A request of {tokens:,} tokens" for tokens in TEXTS)]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    for name, shape in MODELS.items():
        folder = make_folder(tmp_path / name, shape)
        rows = {dtype: fit(folder, *options) for dtype, options in OPTIONS.items()}
        token = rows["bfloat16"]["K/V per token"]
        requests = [f"{size_in_bytes(token) * tokens / 1024**2:,.0f} MiB" for tokens in TEXTS]
        cells = [name, rows["bfloat16"]["weights"], rows["int8"]["weights"], token, *requests]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def test_the_table_of_models_is_what_fit_says(tmp_path):
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2, for which the table is made")
    before, rest = PAGE.read_text().split(BEGIN)
    old, after = rest.split(END)
    new = table(tmp_path)
    if os.environ.get("PENSTOCK_UPDATE_DOCS"):
        PAGE.write_text(before + BEGIN + new + END + after)
        return
    assert old == new, "docs/sizing.md is stale: PENSTOCK_UPDATE_DOCS=1 pytest tests/integration/test_sizing_page.py"
