"""Writes the folder of a model of the Llama-3-8B shape whose weights are holes of a sparse file.

usage: sparse_model.py FOLDER

Only for programs that read the headers and make the weights (penstock-gpu-bench --made-weights): making 16 GB of
random values would take longer than all measurements.
"""

import json
import sys
from pathlib import Path

LAYERS, HIDDEN, INNER, VOCABULARY, KV_WIDTH = 32, 4096, 14336, 128256, 1024
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 128000,
    "eos_token_id": 128001,
    "torch_dtype": "bfloat16",
}


def shapes():
    yield "model.embed_tokens.weight", [VOCABULARY, HIDDEN]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [HIDDEN]
        yield at + "self_attn.q_proj.weight", [HIDDEN, HIDDEN]
        yield at + "self_attn.k_proj.weight", [KV_WIDTH, HIDDEN]
        yield at + "self_attn.v_proj.weight", [KV_WIDTH, HIDDEN]
        yield at + "self_attn.o_proj.weight", [HIDDEN, HIDDEN]
        yield at + "post_attention_layernorm.weight", [HIDDEN]
        yield at + "mlp.gate_proj.weight", [INNER, HIDDEN]
        yield at + "mlp.up_proj.weight", [INNER, HIDDEN]
        yield at + "mlp.down_proj.weight", [HIDDEN, INNER]
    yield "model.norm.weight", [HIDDEN]
    yield "lm_head.weight", [VOCABULARY, HIDDEN]


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    table, offset = {}, 0
    for name, shape in shapes():
        size = 2
        for side in shape:
            size *= side
        table[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    header = json.dumps(table).encode()
    header += b" " * (-len(header) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + offset)


if __name__ == "__main__":
    main()
