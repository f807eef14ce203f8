"""Solar Open: experts in each layer, a sigmoid router with groups, and a shared expert."""
from checkpoints import Tensors, Variant
from recipes.deepseek_v3 import routed_experts

BASE = {"architectures": ["SolarOpenForCausalLM"], "model_type": "solar_open", "hidden_act": "silu",
        "hidden_size": 32, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "moe_intermediate_size": 24, "n_routed_experts": 8, "num_experts_per_tok": 3}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "intermediate_size": 64, "first_k_dense_replace": 0, "n_group": 1, "topk_group": 1, "n_shared_experts": 1,
        "norm_topk_prob": True, "partial_rotary_factor": 1.0, "rope_theta": 1000000, "routed_scaling_factor": 1.5,
        "rope_scaling": {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 128},
        "use_qk_norm": False, "torch_dtype": "bfloat16"}, "bfloat16"),
    # No theta in the file: 1e6 is the default of the class.
    "v5_groups": Variant(BASE | {"n_group": 4, "topk_group": 2, "n_shared_experts": 2, "norm_topk_prob": False,
                                 "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("post_attention_layernorm", hidden)
        routed_experts(layer, config, bias=True)
    t.norm("model.norm", hidden)
    t.head(config)
