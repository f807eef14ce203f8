"""ERNIE 4.5: Llama with interleaved RoPE, tied."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Ernie4_5ForCausalLM"], "model_type": "ernie4_5", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01}
VARIANTS = {
    "v4_tied": Variant(BASE | {"use_bias": False, "tie_word_embeddings": True, "rope_theta": 500000.0,
                              "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {"use_bias": True, "tie_word_embeddings": False, "dtype": "float32",
                                "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config["use_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden, bias)
    t.norm("model.norm", hidden)
    t.head(config)
