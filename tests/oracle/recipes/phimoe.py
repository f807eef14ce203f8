"""Phi-3.5-MoE: LayerNorm, biases, experts chosen by a sparse mixer."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["PhimoeForCausalLM"], "model_type": "phimoe", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 48, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "rms_norm_eps": 0.01, "tie_word_embeddings": False, "num_local_experts": 6,
        "num_experts_per_tok": 2, "input_jitter_noise": 0.01}
SHORT, LONG = [1.0, 1.1, 1.3, 1.2], [1.5, 2.0, 4.0, 6.0]
VARIANTS = {
    # A wide distance: several experts share the softmax.
    "v4_hub": Variant(BASE | {
        "attention_bias": True, "lm_head_bias": True, "router_jitter_noise": 0.3, "rope_theta": 10000.0,
        "sliding_window": 131072, "original_max_position_embeddings": 128, "rope_scaling": {
            "type": "longrope", "short_factor": SHORT, "long_factor": LONG, "short_mscale": 1.2, "long_mscale": 1.2,
            "original_max_position_embeddings": 128},
        "torch_dtype": "bfloat16"}, "bfloat16", length_rule="whole", original_length=128),
    "v5_window": Variant(BASE | {
        "attention_bias": False, "lm_head_bias": False, "sliding_window": 8, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, options={"own_names": True}),
}


def tensors(t: Tensors, config: dict, own_names: bool = False) -> None:
    hidden, width, experts = config["hidden_size"], config["intermediate_size"], config["num_local_experts"]
    bias, block = config["attention_bias"], "mlp" if own_names else "block_sparse_moe"
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.linear(f"{block}.router" if own_names else f"{block}.gate", experts, hidden, gain=2.0)
        if own_names:
            layer.experts(f"{block}.experts", experts, width, hidden, True)
            continue
        for expert in range(experts):
            layer.linear(f"{block}.experts.{expert}.w1", width, hidden)
            layer.linear(f"{block}.experts.{expert}.w2", hidden, width)
            layer.linear(f"{block}.experts.{expert}.w3", width, hidden)
    t.norm("model.norm", hidden, bias=True)
    t.head(config)
    if config["lm_head_bias"]:
        t.add("lm_head.bias", (config["vocab_size"],), std=0.3)
