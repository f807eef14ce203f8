"""MPT: linear biases of attention, LayerNorm without biases, bounded queries, keys and values."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["MPTForCausalLM"], "model_type": "mpt", "d_model": 32, "n_heads": 4, "n_layers": 2,
        "max_seq_len": 256, "layer_norm_epsilon": 0.01, "expansion_ratio": 4, "no_bias": True}
ATTENTION = {"alibi": True, "alibi_bias_max": 8, "attn_type": "multihead_attention", "clip_qkv": None,
             "prefix_lm": False, "qk_ln": False, "softmax_scale": None}
VARIANTS = {
    "v4_7b": Variant(BASE | {"attn_config": ATTENTION, "torch_dtype": "bfloat16"}, "bfloat16"),
    # As MPT 30B, and a bound.
    "v4_clip": Variant(BASE | {"attn_config": ATTENTION | {"clip_qkv": 1.0, "softmax_scale": 0.5},
                               "torch_dtype": "float32"}),
    # Six heads: every second slope of eight, then the others.
    "v5_six_heads": Variant(BASE | {"architectures": ["MptForCausalLM"], "d_model": 48, "n_heads": 6,
                                    "attn_config": {"alibi_bias_max": 4}, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["d_model"]
    t.embedding("transformer.wte", config["vocab_size"], hidden)
    for i in range(config["n_layers"]):
        layer = t.at(f"transformer.blocks.{i}.")
        layer.norm("norm_1", hidden)
        layer.linear("attn.Wqkv", 3 * hidden, hidden)
        layer.linear("attn.out_proj", hidden, hidden)
        layer.norm("norm_2", hidden)
        layer.linear("ffn.up_proj", 4 * hidden, hidden)
        layer.linear("ffn.down_proj", hidden, 4 * hidden)
    t.norm("transformer.norm_f", hidden)
