"""Granite MoE: Granite with experts in stacks of their own names."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GraniteMoeForCausalLM"], "model_type": "granitemoe", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 24, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 0.01, "num_local_experts": 6,
        "num_experts_per_tok": 3}
MULTIPLIERS = {"embedding_multiplier": 2.0, "logits_scaling": 1.25, "residual_multiplier": 0.8,
               "attention_multiplier": 0.5}
VARIANTS = {
    "v4_tied": Variant(BASE | MULTIPLIERS | {"tie_word_embeddings": True, "rope_theta": 10000.0,
                                            "attention_bias": False, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {"tie_word_embeddings": False, "attention_bias": True, "dtype": "float32",
                                "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, width, bias = config["hidden_size"], config["intermediate_size"], config["attention_bias"]
    experts, shared = config["num_local_experts"], config.get("shared_intermediate_size", 0)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("block_sparse_moe.router.layer", experts, hidden)
        layer.add("block_sparse_moe.input_linear.weight", (experts, 2 * width, hidden), std=1.5 / hidden ** 0.5)
        layer.add("block_sparse_moe.output_linear.weight", (experts, hidden, width), std=1.5 / width ** 0.5)
        if shared:
            layer.linear("shared_mlp.input_linear", 2 * shared, hidden)
            layer.linear("shared_mlp.output_linear", hidden, shared)
    t.norm("model.norm", hidden)
    t.head(config)
