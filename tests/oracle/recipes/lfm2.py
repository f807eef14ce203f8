"""LFM2: gated short convolutions, and attention with norms of heads."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2", "hidden_size": 32, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 4, "norm_eps": 0.01}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "block_auto_adjust_ff_dim": True, "block_dim": 32, "block_ff_dim": 90, "block_ffn_dim_multiplier": 1.0,
        "block_multiple_of": 8, "conv_L_cache": 3, "conv_bias": False, "full_attn_idxs": [2], "rope_theta": 1000000.0,
        "tie_embedding": True, "torch_dtype": "bfloat16"}, "bfloat16", options={"width": 64}),
    "v5_biases": Variant(BASE | {
        "block_auto_adjust_ff_dim": False, "conv_L_cache": 4, "conv_bias": True, "intermediate_size": 48,
        "layer_types": ["conv", "full_attention", "conv", "conv"], "tie_word_embeddings": False, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, options={"width": 48}),
}


def operator(layer: Tensors, config: dict, attends: bool) -> None:
    hidden, heads, bias = config["hidden_size"], config["num_attention_heads"], config["conv_bias"]
    dim = hidden // heads
    layer.norm("operator_norm", hidden)
    if attends:
        layer.linear("self_attn.q_proj", hidden, hidden)
        layer.linear("self_attn.k_proj", config["num_key_value_heads"] * dim, hidden)
        layer.linear("self_attn.v_proj", config["num_key_value_heads"] * dim, hidden)
        layer.linear("self_attn.out_proj", hidden, hidden)
        layer.norm("self_attn.q_layernorm", dim)
        layer.norm("self_attn.k_layernorm", dim)
    else:
        layer.linear("conv.in_proj", 3 * hidden, hidden, bias)
        layer.add("conv.conv.weight", (hidden, 1, config["conv_L_cache"]), std=0.6)
        if bias:
            layer.add("conv.conv.bias", (hidden,), std=0.3)
        layer.linear("conv.out_proj", hidden, hidden, bias)
    layer.norm("ffn_norm", hidden)


def attends(config: dict, index: int) -> bool:
    return index in config.get("full_attn_idxs", []) or config.get("layer_types", [""] * 9)[index] == "full_attention"


def mlp(layer: Tensors, width: int, hidden: int) -> None:
    layer.linear("w1", width, hidden)
    layer.linear("w3", width, hidden)
    layer.linear("w2", hidden, width)


def tensors(t: Tensors, config: dict, width: int) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        operator(layer, config, attends(config, i))
        mlp(layer.at("feed_forward."), width, hidden)
    t.norm("model.embedding_norm", hidden)
    t.head({"tie_word_embeddings": True} | config)
