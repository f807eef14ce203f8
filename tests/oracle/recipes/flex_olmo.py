"""FlexOlmo: norms after the branches alone, norms over all heads, and experts in each layer."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["FlexOlmoForCausalLM"], "model_type": "flex_olmo", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 24, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "num_experts": 7, "num_experts_per_tok": 5,
        "pad_token_id": 259}
VARIANTS = {
    "v4_hub": Variant(BASE | {"norm_topk_prob": False, "rope_theta": 500000, "rope_scaling": None,
                              "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_fused": Variant(BASE | {"norm_topk_prob": True, "attention_bias": True, "num_key_value_heads": 2,
                                "dtype": "float32",
                                "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
                        options={"fused": True}),
}


def tensors(t: Tensors, config: dict, fused: bool = False) -> None:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    bias = config.get("attention_bias", False)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.attention(config, bias, bias)
        layer.norm("self_attn.q_norm", hidden)
        layer.norm("self_attn.k_norm", hidden // heads * config.get("num_key_value_heads", heads))
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("mlp.gate", config["num_experts"], hidden)
        layer.experts("mlp.experts", config["num_experts"], config["intermediate_size"], hidden, fused)
        layer.norm("post_feedforward_layernorm", hidden)
    t.norm("model.norm", hidden)
    t.head(config)
