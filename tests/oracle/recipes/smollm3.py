"""SmolLM3: some layers have no RoPE; windows can be on those layers."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "pad_token_id": 0}
VARIANTS = {
    # Tied without a key; every fourth layer has no RoPE.
    "v4_interval": Variant(BASE | {
        "no_rope_layer_interval": 4, "rope_theta": 5000000.0, "use_sliding_window": False,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    "v4_list": Variant(BASE | {
        "no_rope_layers": [0, 1, 1, 0], "rope_theta": 10000.0, "tie_word_embeddings": False,
        "attention_bias": True, "mlp_bias": True, "torch_dtype": "float32", "rope_scaling": {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}}),
    # Without layer types, the layers without RoPE have the window.
    "v5_window": Variant(BASE | {
        "no_rope_layers": [1, 0, 1, 0], "use_sliding_window": True, "sliding_window": 8,
        "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config.get("attention_bias", False)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden, config.get("mlp_bias", False))
    t.norm("model.norm", hidden)
    t.head(config | {"tie_word_embeddings": config.get("tie_word_embeddings", True)})
