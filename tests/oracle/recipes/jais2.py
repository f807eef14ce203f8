"""Jais 2: LayerNorm, biases, an MLP without a gate that squares."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Jais2ForCausalLM"], "model_type": "jais2", "hidden_act": "relu2", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "layer_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4,
                              "rope_theta": 500000.0, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_no_biases": Variant(BASE | {
        "attention_bias": False, "mlp_bias": False, "num_key_value_heads": 2, "head_dim": 16,
        "tie_word_embeddings": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias, mlp_bias = config["hidden_size"], config["attention_bias"], config["mlp_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.linear("mlp.up_proj", config["intermediate_size"], hidden, mlp_bias, gain=1.0)
        layer.linear("mlp.down_proj", hidden, config["intermediate_size"], mlp_bias)
    t.norm("model.norm", hidden, bias=True)
    t.head(config)
