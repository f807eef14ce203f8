"""Seed-OSS: Llama with biases of queries, keys and values, and heads of another width."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["SeedOssForCausalLM"], "model_type": "seed_oss", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {"attention_bias": True, "attention_out_bias": False, "mlp_bias": False,
                             "rope_theta": 10000000.0, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_all_biases": Variant(BASE | {"attention_bias": True, "attention_out_bias": True, "mlp_bias": True,
                                    "dtype": "float32",
                                    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, config["attention_bias"], config["attention_out_bias"])
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden, config["mlp_bias"])
    t.norm("model.norm", hidden)
    t.head(config)
