"""OLMo: LayerNorm without weights, bounded queries, keys and values."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["OlmoForCausalLM"], "model_type": "olmo", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "tie_word_embeddings": False}
VARIANTS = {
    # As OLMo 7B: the bound applies to a part of the values.
    "v4_clip": Variant(BASE | {"clip_qkv": 1.0, "rope_theta": 10000.0, "torch_dtype": "bfloat16"}, "bfloat16"),
    # As OLMo 1B: a key that is null, and tied.
    "v4_tied": Variant(BASE | {"clip_qkv": None, "tie_word_embeddings": True, "num_key_value_heads": 2,
                               "rope_theta": 10000.0, "torch_dtype": "float32"}),
    "v5_biases": Variant(BASE | {"attention_bias": True, "clip_qkv": 0.5, "dtype": "float32", "rope_parameters": {
        "rope_theta": 500.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config.get("attention_bias", False)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.attention(config, bias, bias)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.head(config)
