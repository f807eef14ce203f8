"""Qwen2 with experts and a shared expert that has its own gate."""
from checkpoints import Tensors, Variant
from recipes.qwen3_5_moe import shared_moe
from recipes.qwen3_moe import is_sparse

BASE = {"architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "num_experts": 6,
        "num_experts_per_tok": 3, "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 40, "decoder_sparse_step": 1}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "norm_topk_prob": False, "rope_theta": 1000000.0, "use_sliding_window": False,
        "sliding_window": 8, "max_window_layers": 3, "torch_dtype": "bfloat16"}, "bfloat16"),
    # Without layer types, layers 0, 2, ... below max_window_layers have the window.
    "v4_window": Variant(BASE | {
        "norm_topk_prob": True, "rope_theta": 10000.0, "use_sliding_window": True,
        "sliding_window": 8, "max_window_layers": 2, "mlp_only_layers": [1],
        "torch_dtype": "float32"}),
    "v5_no_bias": Variant(BASE | {
        "norm_topk_prob": True, "qkv_bias": False, "use_sliding_window": True, "sliding_window": 8,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        "decoder_sparse_step": 2, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, qkv_bias=config.get("qkv_bias", True))
        layer.norm("post_attention_layernorm", hidden)
        if is_sparse(config, i):
            shared_moe(layer, config, fused=False)
        else:
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
