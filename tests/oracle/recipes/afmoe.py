"""Trinity: four norms, gated attention, RoPE on layers with a window alone, a sigmoid router."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["AfmoeForCausalLM"], "model_type": "afmoe", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 4,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 3, "sliding_window": 8}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "global_attn_every_n_layers": 4, "num_dense_layers": 2, "num_shared_experts": 1, "route_norm": True,
        "route_scale": 2.5, "score_func": "sigmoid", "n_group": 1, "topk_group": 1, "mup_enabled": True,
        "rope_theta": 10000, "rope_scaling": None, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_plain": Variant(BASE | {
        "layer_types": ["full_attention", "sliding_attention"] * 2, "num_dense_layers": 0, "num_shared_experts": 2,
        "tie_word_embeddings": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, width, experts = config["hidden_size"], config["moe_intermediate_size"], config["num_experts"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden, std=0.05 if config.get("mup_enabled") else 0.3)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        for name in ("input_layernorm", "post_attention_layernorm", "pre_mlp_layernorm", "post_mlp_layernorm"):
            layer.norm(name, hidden)
        layer.attention(config)
        layer.linear("self_attn.gate_proj", config["num_attention_heads"] * config["head_dim"], hidden)
        layer.norm("self_attn.q_norm", config["head_dim"])
        layer.norm("self_attn.k_norm", config["head_dim"])
        if i < config["num_dense_layers"]:
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
            continue
        layer.linear("mlp.router.gate", experts, hidden, gain=3.0)
        layer.add("mlp.expert_bias", (experts,), std=0.3, encoding="F32")
        layer.experts("mlp.experts", experts, width, hidden, False)
        layer.gated_mlp("mlp.shared_experts", width * config["num_shared_experts"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
