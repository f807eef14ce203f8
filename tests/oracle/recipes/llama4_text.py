"""The text model of Llama 4: chunks, layers without RoPE whose queries grow, experts with weighed inputs."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Llama4ForCausalLM"], "model_type": "llama4_text", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 24, "intermediate_size_mlp": 48, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 0.01,
        "tie_word_embeddings": False, "num_local_experts": 4, "num_experts_per_tok": 1, "attention_chunk_size": 24,
        "attn_temperature_tuning": True, "floor_scale": 16, "attn_scale": 0.5}
VARIANTS = {
    # As Scout: the sizes of the model are read from lists and intervals.
    "v4_scout": Variant(BASE | {
        "interleave_moe_layer_step": 1, "no_rope_layers": [], "use_qk_norm": True, "rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 64}, "torch_dtype": "bfloat16"}, "bfloat16"),
    # As Maverick: dense layers between sparse ones, no norms of heads.
    "v5_dense_layers": Variant(BASE | {
        "moe_layers": [1, 3], "no_rope_layers": [1, 0, 1, 0], "use_qk_norm": False, "num_experts_per_tok": 2,
        "attention_bias": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def is_sparse(config: dict, layer: int) -> bool:
    return layer in config.get("moe_layers", range(config["num_hidden_layers"]))


def tensors(t: Tensors, config: dict, prefix: str = "") -> None:
    hidden, width, bias = config["hidden_size"], config["intermediate_size"], config.get("attention_bias", False)
    experts = config["num_local_experts"]
    t.embedding(prefix + "model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"{prefix}model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        if is_sparse(config, i):
            layer.linear("feed_forward.router", experts, hidden)
            layer.add("feed_forward.experts.gate_up_proj", (experts, hidden, 2 * width), std=1.5 / hidden ** 0.5)
            layer.add("feed_forward.experts.down_proj", (experts, width, hidden), std=1.5 / width ** 0.5)
            layer.gated_mlp("feed_forward.shared_expert", width, hidden)
        else:
            layer.gated_mlp("feed_forward", config["intermediate_size_mlp"], hidden)
    t.norm(prefix + "model.norm", hidden)
    t.head(config, prefix + "lm_head")
