"""Large random checkpoints of any model type, from the recipes of tests/oracle.

A recipe names the tensors and their spread. The values are a block of normal numbers, which repeats at a
distance of its own in each tensor. That is enough for timings, and a gigabyte takes seconds.
"""

import hashlib
import json
import math
import random
import struct
import sys
from array import array

from programs import BUILD, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "oracle"))
import checkpoints  # noqa: E402

MODELS = BUILD / "bench-models"
BLOCK = 1 << 18  # values

COMMON = {"vocab_size": 32000, "bos_token_id": 1, "max_position_embeddings": 8192, "hidden_act": "silu",
          "rms_norm_eps": 1e-6, "tie_word_embeddings": True, "dtype": "bfloat16", "attention_bias": False}
ROPE = {"rope_theta": 1e6, "rope_type": "default"}
EXPERTS = COMMON | {"model_type": "qwen3_moe", "hidden_size": 1024, "num_hidden_layers": 8,
                    "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64,
                    "intermediate_size": 4096, "moe_intermediate_size": 512, "num_experts": 64,
                    "num_experts_per_tok": 8, "norm_topk_prob": True, "decoder_sparse_step": 1,
                    "mlp_only_layers": [], "use_sliding_window": False, "rope_parameters": ROPE}
# The experts that a token uses are as large as one MLP of this model.
DENSE = {key: value for key, value in EXPERTS.items() if "expert" not in key and "moe" not in key}
DENSE |= {"model_type": "qwen3"}
# Three gated delta nets and one layer of attention, four times, in the widths of Qwen3.5-2B.
DELTA = COMMON | {"model_type": "qwen3_5_text", "hidden_size": 2048, "num_hidden_layers": 16,
                  "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
                  "intermediate_size": 6144, "full_attention_interval": 4, "attn_output_gate": True,
                  "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
                  "linear_num_key_heads": 16, "linear_num_value_heads": 16, "mamba_ssm_dtype": "float32",
                  "rope_parameters": ROPE | {"partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10],
                                             "mrope_interleaved": True}}
# A variant of the recipe, the configuration, and options of the recipe's tensors().
SHAPES = {
    "experts-8-of-64": ("qwen3_moe-v4_single", EXPERTS, {}),
    "dense-as-8-experts": ("qwen3-v4_tied", DENSE, {}),
    "delta-net": ("qwen3_5-v5_text", DELTA, {"prefix": "model."}),
}


def model(name):
    """The folder of the model. It is made once."""
    folder = MODELS / name
    recipe, config, options = SHAPES[name]
    if (folder / "config.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    tensors = checkpoints.Tensors()
    checkpoints.recipes()[recipe].module.tensors(tensors, config, **options)
    write(folder / "model.safetensors", {key: t for key, t in tensors.items() if not t.surplus})
    (folder / "config.json").write_text(json.dumps(config) + "\n")
    return folder


def write(path, tensors):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        size = 2 * math.prod(tensor.shape)
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    blocks = {}
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, tensor in tensors.items():
            spread = (tensor.mean, tensor.std)
            if spread not in blocks:
                blocks[spread] = block_of(*spread)
            write_values(file, name, blocks[spread], 2 * math.prod(tensor.shape))
    partial.rename(path)


def block_of(mean, std):
    """BF16 numbers, cut off."""
    source = random.Random(f"{mean} {std}")
    wide = array("f", checkpoints.normal_values(source, BLOCK, mean, std)).tobytes()
    narrow = bytearray(2 * BLOCK)
    narrow[0::2], narrow[1::2] = wide[2::4], wide[3::4]
    return bytes(narrow)


def write_values(file, name, block, size):
    first = 2 * (int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") % BLOCK)
    # An odd period, so that rows of a matrix do not repeat at once.
    turned = (block[first:] + block[:first])[:len(block) - 2 * 53]
    while size > 0:
        size -= file.write(turned[:size])
