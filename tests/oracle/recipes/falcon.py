"""Falcon: the forms of 7B, 40B, 11B and RW."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["FalconForCausalLM"], "model_type": "falcon", "hidden_size": 32, "num_attention_heads": 4,
        "num_hidden_layers": 2, "layer_norm_epsilon": 0.01, "max_position_embeddings": 256}
SEVEN = BASE | {"multi_query": True, "new_decoder_architecture": False, "parallel_attn": True, "alibi": False,
                "bias": False}
GROUPS = BASE | {"new_decoder_architecture": True, "num_kv_heads": 2}
RW = BASE | {"multi_query": False, "parallel_attn": False, "alibi": True, "bias": True}
VARIANTS = {
    "v4_7b": Variant(SEVEN | {"num_kv_heads": 4, "rope_theta": 10000.0, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v4_40b": Variant(GROUPS | {"parallel_attn": True, "torch_dtype": "float32"}),
    # transformers adds the biases twice with its plain attention, and once with that of torch.
    "v4_rw": Variant(RW | {"torch_dtype": "float32"}, attention="sdpa"),
    # Slopes that bfloat16 rounds.
    "v5_rw_six_heads": Variant(RW | {"hidden_size": 48, "num_attention_heads": 6, "dtype": "float32"},
                               attention="sdpa"),
    "v5_11b": Variant(GROUPS | {"num_ln_in_parallel_attn": 1, "ffn_hidden_size": 48, "tie_word_embeddings": False,
                                "dtype": "float32", "rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}}),
    # Branches that follow each other, with RoPE.
    "v5_in_turn": Variant(SEVEN | {"parallel_attn": False, "bias": True, "activation": "gelu_new", "dtype": "float32",
                                   "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, heads, bias = config["hidden_size"], config["num_attention_heads"], config.get("bias", False)
    groups = config.get("new_decoder_architecture", False)
    kv_heads = config["num_kv_heads"] if groups else 1 if config["multi_query"] else heads
    width = config.get("ffn_hidden_size", 4 * hidden)
    parallel = groups or config["parallel_attn"]
    two_norms = groups and config.get("num_ln_in_parallel_attn", 2) == 2
    t.embedding("transformer.word_embeddings", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"transformer.h.{i}.")
        layer.norm("ln_attn" if two_norms else "input_layernorm", hidden, bias=True)
        layer.linear("self_attention.query_key_value", (heads + 2 * kv_heads) * (hidden // heads), hidden, bias)
        layer.linear("self_attention.dense", hidden, hidden, bias)
        if two_norms:
            layer.norm("ln_mlp", hidden, bias=True)
        if not parallel:
            layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.linear("mlp.dense_h_to_4h", width, hidden, bias)
        layer.linear("mlp.dense_4h_to_h", hidden, width, bias)
    t.norm("transformer.ln_f", hidden, bias=True)
    if config.get("tie_word_embeddings") is False:
        t.linear("lm_head", config["vocab_size"], hidden)
