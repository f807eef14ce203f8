"""K-EXAONE: norms of heads, RoPE on layers with a window alone, and a sigmoid router with groups."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["ExaoneMoeForCausalLM"], "model_type": "exaone_moe", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01,
        "tie_word_embeddings": False, "moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 3}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "first_k_dense_replace": 1, "layer_types": ["sliding_attention", "full_attention"] * 2,
        "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "n_group": 1, "topk_group": 1,
        "norm_topk_prob": True, "num_nextn_predict_layers": 1, "num_shared_experts": 1, "rope_theta": 1000000,
        "rope_scaling": None, "routed_scaling_factor": 2.0, "scoring_func": "sigmoid", "sliding_window": 8,
        "sliding_window_pattern": "LG", "topk_method": "noaux_tc", "torch_dtype": "bfloat16"},
        "bfloat16", options={"mtp": True}),
    # The number of dense layers and the factor are defaults of the class.
    "v5_pattern": Variant(BASE | {
        "n_group": 4, "topk_group": 2, "norm_topk_prob": False, "num_shared_experts": 2, "sliding_window": 8,
        "sliding_window_pattern": 2, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
        options={"bias": "mlp.gate.e_score_correction_bias"}),
    # No layer is dense.
    "v5_sparse": Variant(BASE | {
        "first_k_dense_replace": 0, "layer_types": ["full_attention"] + ["sliding_attention"] * 3,
        "num_shared_experts": 1, "sliding_window": 16, "routed_scaling_factor": 1.0, "tie_word_embeddings": True,
        "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict, mtp: bool = False, bias: str = "mlp.e_score_correction_bias") -> None:
    hidden, dim, experts = config["hidden_size"], config["head_dim"], config["num_experts"]
    width = config["moe_intermediate_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("self_attn.q_norm", dim)
        layer.norm("self_attn.k_norm", dim)
        layer.norm("post_attention_layernorm", hidden)
        if i < config.get("first_k_dense_replace", 1):
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
            continue
        layer.linear("mlp.gate", experts, hidden, gain=3.0)
        layer.add(bias, (experts,), std=0.3, encoding="F32")
        layer.experts("mlp.experts", experts, width, hidden, False)
        layer.gated_mlp("mlp.shared_experts", width * config["num_shared_experts"], hidden)
    if mtp:
        t.surplus("mtp.fc.weight")
        t.surplus("mtp.layers.0.self_attn.q_proj.weight")
    t.norm("model.norm", hidden)
    t.head(config)
