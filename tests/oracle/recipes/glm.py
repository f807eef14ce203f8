"""GLM-4 9B: partial interleaved RoPE, biases of q, k and v, gate and up in one matrix."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GlmForCausalLM"], "model_type": "glm", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "pad_token_id": 259,
        "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {"attention_bias": True, "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
                              "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_no_biases": Variant(BASE | {"attention_bias": False, "num_key_value_heads": 1, "dtype": "float32",
                                    "rope_parameters": {"rope_theta": 500.0, "rope_type": "default",
                                                        "partial_rotary_factor": 0.25}}),
}


def tensors(t: Tensors, config: dict, branch_norms: bool = False) -> None:
    hidden, width = config["hidden_size"], config["intermediate_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, config["attention_bias"])
        layer.norm("post_attention_layernorm", hidden)
        if branch_norms:
            layer.norm("post_self_attn_layernorm", hidden)
            layer.norm("post_mlp_layernorm", hidden)
        layer.linear("mlp.gate_up_proj", 2 * width, hidden)
        layer.linear("mlp.down_proj", hidden, width)
    t.norm("model.norm", hidden)
    t.head(config)
