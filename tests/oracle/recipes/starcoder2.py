"""StarCoder2: LayerNorm and biases everywhere, an MLP without a gate, and a window."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", "hidden_size": 32,
        "intermediate_size": 96, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 3, "num_key_value_heads": 2, "norm_epsilon": 0.01}
VARIANTS = {
    # As published: tied without a key, a window for all layers.
    "v4_window": Variant(BASE | {
        "hidden_act": "gelu_pytorch_tanh", "mlp_type": "default", "norm_type": "layer_norm",
        "rope_theta": 999999.0, "sliding_window": 8, "use_bias": True,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    # No window and no biases.
    "v5_untied": Variant(BASE | {
        "hidden_act": "gelu", "tie_word_embeddings": False, "use_bias": False,
        "sliding_window": None, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config["use_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.linear("mlp.c_fc", config["intermediate_size"], hidden, bias)
        layer.linear("mlp.c_proj", hidden, config["intermediate_size"], bias)
    t.norm("model.norm", hidden, bias=True)
    t.head(config | {"tie_word_embeddings": config.get("tie_word_embeddings", True)})
