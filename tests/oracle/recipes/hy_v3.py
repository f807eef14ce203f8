"""Hunyuan 3: norms of heads, a sigmoid router without groups, and a shared expert."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["HYV3ForCausalLM"], "model_type": "hy_v3", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 3,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 3}
VARIANTS = {
    "v4_hub": Variant(BASE | {"num_shared_experts": 1, "rope_theta": 11158840.0, "router_scaling_factor": 2.826,
                              "torch_dtype": "bfloat16"}, "bfloat16", options={"published": True}),
    # The names of transformers; the factor and theta are defaults of the class.
    "v5_own_names": Variant(BASE | {"mlp_layer_types": ["sparse", "sparse", "dense"], "num_shared_experts": 2,
                                    "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict, published: bool = False) -> None:
    hidden, width, experts = config["hidden_size"], config["moe_intermediate_size"], config["num_experts"]
    kinds = config.get("mlp_layer_types", ["dense", "sparse", "sparse"])
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
            continue
        layer.linear("mlp.router.gate" if published else "mlp.gate", experts, hidden, gain=3.0)
        layer.add("mlp.expert_bias" if published else "mlp.e_score_correction_bias", (experts,), std=0.3,
                  encoding="F32")
        layer.experts("mlp.experts", experts, width, hidden, False)
        layer.gated_mlp("mlp.shared_mlp" if published else "mlp.shared_experts",
                        width * config["num_shared_experts"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
