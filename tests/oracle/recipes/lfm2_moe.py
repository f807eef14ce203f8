"""LFM2 with a mixture of experts after the first layers."""
from checkpoints import Tensors, Variant
from recipes.lfm2 import attends, mlp, operator

BASE = {"architectures": ["Lfm2MoeForCausalLM"], "model_type": "lfm2_moe", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 4, "norm_eps": 0.01, "moe_intermediate_size": 24, "num_experts": 8,
        "num_experts_per_tok": 3, "conv_bias": False}
KINDS = ["conv", "conv", "full_attention", "conv"]
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "conv_L_cache": 3, "layer_types": KINDS, "norm_topk_prob": True, "num_dense_layers": 2,
        "rope_theta": 1000000.0, "routed_scaling_factor": 1.0, "tie_embedding": True, "use_expert_bias": True,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_plain": Variant(BASE | {
        "conv_L_cache": 3, "layer_types": KINDS[::-1], "norm_topk_prob": False, "num_dense_layers": 0,
        "routed_scaling_factor": 0.7, "tie_word_embeddings": False, "use_expert_bias": False, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, experts = config["hidden_size"], config["num_experts"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        operator(layer, config, attends(config, i))
        if i < config["num_dense_layers"]:
            mlp(layer.at("feed_forward."), config["intermediate_size"], hidden)
            continue
        layer.linear("feed_forward.gate", experts, hidden, gain=3.0)
        if config["use_expert_bias"]:
            layer.add("feed_forward.expert_bias", (experts,), std=0.3, encoding="F32")
        for expert in range(experts):
            mlp(layer.at(f"feed_forward.experts.{expert}."), config["moe_intermediate_size"], hidden)
    t.norm("model.embedding_norm", hidden)
    t.head({"tie_word_embeddings": True} | config)
