"""Hunyuan: norms of heads after RoPE, and a base of RoPE that is scaled by a power of alpha."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["HunYuanDenseV1ForCausalLM"], "model_type": "hunyuan_v1_dense", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01}
ALPHA = {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
VARIANTS = {
    "v4_alpha": Variant(BASE | {"attention_bias": False, "tie_word_embeddings": True, "rope_theta": 10000.0,
                                "rope_scaling": ALPHA | {"type": "dynamic"}, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {"attention_bias": True, "tie_word_embeddings": False, "dtype": "float32",
                                 "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config["attention_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("self_attn.query_layernorm", config["head_dim"])
        layer.norm("self_attn.key_layernorm", config["head_dim"])
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
