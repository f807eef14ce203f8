"""Mellum 2: Qwen3-MoE with windows, and RoPE parameters by the kind of the layer."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["MellumForCausalLM"], "model_type": "mellum", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 4,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "moe_intermediate_size": 24, "num_local_experts": 8, "num_experts_per_tok": 3}
VARIANTS = {
    "v5_hub": Variant(BASE | {
        "layer_types": ["sliding_attention"] * 3 + ["full_attention"], "sliding_window": 8, "norm_topk_prob": True,
        "rope_parameters": {
            "full_attention": {"rope_type": "yarn", "rope_theta": 500000.0, "factor": 4.0,
                               "original_max_position_embeddings": 64},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
        "dtype": "bfloat16"}, "bfloat16"),
    # All layers are full by default.
    "v5_dense_layers": Variant(BASE | {
        "mlp_layer_types": ["dense", "sparse", "sparse", "dense"], "norm_topk_prob": False, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    kinds = config.get("mlp_layer_types", ["sparse"] * 4)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i, kind in enumerate(kinds):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("self_attn.q_norm", config["head_dim"])
        layer.norm("self_attn.k_norm", config["head_dim"])
        layer.norm("post_attention_layernorm", hidden)
        if kind == "dense":
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
        else:
            layer.linear("mlp.gate", config["num_local_experts"], hidden, gain=3.0)
            layer.experts("mlp.experts", config["num_local_experts"], config["moe_intermediate_size"], hidden, False)
    t.norm("model.norm", hidden)
    t.head(config)
