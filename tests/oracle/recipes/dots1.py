"""dots.llm1: norms of heads, and a sigmoid router with groups."""
from checkpoints import Tensors, Variant
from recipes.deepseek_v3 import routed_experts

BASE = {"architectures": ["Dots1ForCausalLM"], "model_type": "dots1", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 3, "rms_norm_eps": 0.01, "tie_word_embeddings": False, "moe_intermediate_size": 24,
        "n_routed_experts": 8, "num_experts_per_tok": 3}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "attention_bias": False, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_shared_experts": 2,
        "norm_topk_prob": True, "max_window_layers": 3, "sliding_window": None, "rope_scaling": None,
        "rope_theta": 10000000, "routed_scaling_factor": 2.5, "scoring_func": "noaux_tc", "torch_dtype": "bfloat16"},
        "bfloat16"),
    # No dense layer, and weights that are not divided by their sum: defaults of the class.
    "v5_window": Variant(BASE | {
        "attention_bias": True, "n_group": 4, "topk_group": 2, "n_shared_experts": 1, "num_key_value_heads": 2,
        "max_window_layers": 1, "sliding_window": 8, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config["attention_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("self_attn.q_norm", hidden // config["num_attention_heads"])
        layer.norm("self_attn.k_norm", hidden // config["num_attention_heads"])
        layer.norm("post_attention_layernorm", hidden)
        if i < config.get("first_k_dense_replace", 0):
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
        else:
            routed_experts(layer, config, bias=True)
    t.norm("model.norm", hidden)
    t.head(config)
