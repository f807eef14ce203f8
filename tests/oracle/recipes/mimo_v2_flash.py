"""MiMo-V2-Flash: sinks and twice the K/V heads in layers with a window, narrow values, a sigmoid router."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["MiMoV2FlashForCausalLM"], "model_type": "mimo_v2_flash", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 8,
        "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 24, "v_head_dim": 16, "rms_norm_eps": 0.01,
        "tie_word_embeddings": False, "moe_intermediate_size": 24, "n_routed_experts": 8, "num_experts_per_tok": 3,
        "attention_bias": False}
ROPE = {"full_attention": {"rope_type": "default", "rope_theta": 5000000.0, "partial_rotary_factor": 0.334},
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.334}}
KINDS = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
VARIANTS = {
    # The keys of the published file, which transformers 5 does not read.
    "v4_hub": Variant(BASE | {
        "attention_value_scale": 0.707, "hybrid_layer_pattern": [0, 1, 1, 0], "layernorm_epsilon": 0.01,
        "moe_layer_freq": [0, 1, 1, 1], "n_group": 1, "topk_group": 1, "norm_topk_prob": True,
        "partial_rotary_factor": 0.334, "rope_theta": 5000000, "swa_rope_theta": 10000, "routed_scaling_factor": None,
        "scoring_func": "sigmoid", "sliding_window_size": 7, "swa_num_key_value_heads": 4, "topk_method": "noaux_tc",
        "rms_norm_eps": ..., "torch_dtype": "bfloat16"}, "bfloat16", options={"sinks": "attention_sink_bias"},
        oracle={"layer_types": KINDS, "rope_parameters": ROPE, "rms_norm_eps": 0.01}),
    "v5_groups": Variant(BASE | {
        "layer_types": KINDS[::-1], "mlp_layer_types": ["sparse", "sparse", "dense", "sparse"], "n_group": 4,
        "topk_group": 2, "norm_topk_prob": False, "attention_value_scale": None, "attention_bias": True,
        "rope_parameters": ROPE, "routed_scaling_factor": 1.5, "sliding_window": 16, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict, sinks: str = "sinks") -> None:
    hidden, heads, experts = config["hidden_size"], config["num_attention_heads"], config["n_routed_experts"]
    dim, value, bias = config["head_dim"], config["v_head_dim"], config["attention_bias"]
    kinds = config.get("layer_types", KINDS)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i, mlp in enumerate(config.get("mlp_layer_types", ["dense", "sparse", "sparse", "sparse"])):
        layer = t.at(f"model.layers.{i}.")
        windowed = kinds[i] == "sliding_attention"
        kv_heads = config["num_key_value_heads"] * (2 if windowed else 1)
        layer.norm("input_layernorm", hidden)
        layer.linear("self_attn.q_proj", heads * dim, hidden, bias)
        layer.linear("self_attn.k_proj", kv_heads * dim, hidden, bias)
        layer.linear("self_attn.v_proj", kv_heads * value, hidden, bias)
        layer.linear("self_attn.o_proj", hidden, heads * value)
        if windowed:
            layer.add(f"self_attn.{sinks}", (heads,))
        layer.norm("post_attention_layernorm", hidden)
        if mlp == "dense":
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
            continue
        layer.linear("mlp.gate", experts, hidden, gain=3.0)
        layer.add("mlp.gate.e_score_correction_bias", (experts,), std=0.3, encoding="F32")
        layer.experts("mlp.experts", experts, config["moe_intermediate_size"], hidden, False)
    t.norm("model.norm", hidden)
    t.head(config)
