"""Command R: LayerNorm without biases, parallel branches, interleaved RoPE, scaled logits."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["CohereForCausalLM"], "model_type": "cohere", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "layer_norm_eps": 0.01, "logit_scale": 0.5}
VARIANTS = {
    "v4_tied": Variant(BASE | {"use_qk_norm": False, "rope_theta": 8000000.0, "torch_dtype": "float16"}, "float16"),
    # As Command R+: each head has norms of its own.
    "v4_head_norms": Variant(BASE | {"use_qk_norm": True, "rope_theta": 10000.0, "torch_dtype": "float32"}),
    # The logits are divided by 16 by default.
    "v5_biases": Variant({key: value for key, value in BASE.items() if key != "logit_scale"} | {
        "attention_bias": True, "tie_word_embeddings": False, "use_qk_norm": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config.get("attention_bias", False)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        if config.get("use_qk_norm"):
            layer.add("self_attn.q_norm.weight", (heads, hidden // heads), 1.0, 0.2)
            layer.add("self_attn.k_norm.weight", (kv_heads, hidden // heads), 1.0, 0.2)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head({"tie_word_embeddings": True} | config, std=12.0)
