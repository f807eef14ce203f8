"""OLMo 2: norms after the branches alone, norms over all query heads and over all key heads."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 3,
        "num_key_value_heads": 2, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_gqa": Variant(BASE | {"rope_theta": 500000.0, "torch_dtype": "bfloat16"}, "bfloat16"),
    # As many K/V heads as query heads; on two ranks each has its own.
    "v5_biases": Variant(BASE | {"num_key_value_heads": 4, "attention_bias": True, "dtype": "float32",
                                 "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
    # Two ranks have the same K/V head.
    "v5_mqa": Variant(BASE | {"num_key_value_heads": 1, "dtype": "float32",
                              "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config.get("attention_bias", False)
    kv_width = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.attention(config, bias, bias)
        layer.norm("self_attn.q_norm", hidden)
        layer.norm("self_attn.k_norm", kv_width)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
        layer.norm("post_feedforward_layernorm", hidden)
    t.norm("model.norm", hidden)
    t.head(config)
