"""OLMoE: norms over all query heads and over all key heads, and experts in each layer."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["OlmoeForCausalLM"], "model_type": "olmoe", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 24, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "num_experts": 6, "num_experts_per_tok": 3}
VARIANTS = {
    "v4_hub": Variant(BASE | {"norm_topk_prob": False, "clip_qkv": None, "rope_theta": 10000.0,
                             "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_clip": Variant(BASE | {"norm_topk_prob": True, "clip_qkv": 1.0, "num_key_value_heads": 2, "dtype": "float32",
                              "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
                       options={"fused": True}),
}


def tensors(t: Tensors, config: dict, fused: bool = False) -> None:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("self_attn.q_norm", hidden)
        layer.norm("self_attn.k_norm", hidden // heads * config.get("num_key_value_heads", heads))
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("mlp.gate", config["num_experts"], hidden)
        layer.experts("mlp.experts", config["num_experts"], config["intermediate_size"], hidden, fused)
    t.norm("model.norm", hidden)
    t.head(config)
