"""HyperCLOVA X: the multipliers of Granite, norms after the branches, logits that are multiplied."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["HyperCLOVAXForCausalLM"], "model_type": "hyperclovax", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 3, "num_key_value_heads": 2, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_multipliers": Variant(BASE | {
        "attention_bias": False, "attention_multiplier": 0.5, "embedding_multiplier": 2.0, "logits_scaling": 0.8,
        "residual_multiplier": 0.7, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "head_dim": 16}, "bfloat16"),
    # The multipliers are 1 by default, but for that of attention.
    "v5_no_norms": Variant(BASE | {
        "use_post_norm": False, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True,
        "dtype": "float32", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config["attention_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden, config.get("mlp_bias", False))
        if config.get("use_post_norm", True):
            layer.norm("post_norm1", hidden)
            layer.norm("post_norm2", hidden)
    t.norm("model.norm", hidden)
    t.head(config)
