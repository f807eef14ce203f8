"""Hunyuan with experts: Hunyuan, and a shared expert of the same width as the others."""
from checkpoints import Tensors, Variant
from recipes.hunyuan_v1_dense import ALPHA

BASE = {"architectures": ["HunYuanMoEV1ForCausalLM"], "model_type": "hunyuan_v1_moe", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 24, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "num_experts": 6}
VARIANTS = {
    # As A13B, whose widths and counts are in lists too.
    "v4_hub": Variant(BASE | {
        "attention_bias": False, "moe_intermediate_size": [24, 24], "moe_topk": [3, 3], "num_shared_expert": [1, 1],
        "rope_theta": 10000.0, "rope_scaling": ALPHA | {"type": "dynamic"}, "tie_word_embeddings": True,
        "use_mixed_mlp_moe": True, "use_qk_norm": True, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {
        "attention_bias": True, "moe_topk": 2, "tie_word_embeddings": False, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias, width = config["hidden_size"], config["attention_bias"], config["intermediate_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("self_attn.query_layernorm", config["head_dim"])
        layer.norm("self_attn.key_layernorm", config["head_dim"])
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("mlp.gate.wg", config["num_experts"], hidden, gain=3.0)
        layer.experts("mlp.experts", config["num_experts"], width, hidden, False)
        layer.gated_mlp("mlp.shared_mlp", width, hidden)
    t.norm("model.norm", hidden)
    t.head(config)
