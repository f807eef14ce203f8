"""Qwen3 with experts: a softmax router; some layers are dense."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 256, "head_dim": 16,
        "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "attention_bias": False,
        "moe_intermediate_size": 24, "num_experts_per_tok": 3, "use_sliding_window": False,
        "sliding_window": 8}
V5 = BASE | {"dtype": "float32", "rope_parameters": {"rope_theta": 1000000.0,
                                                    "rope_type": "default"}}
VARIANTS = {
    "v4_single": Variant(BASE | {
        "num_experts": 8, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "rope_theta": 1000000.0, "torch_dtype": "bfloat16"}, "bfloat16"),
    # Layer 0 is dense by the step, layer 3 by the list; the weights are not renormalised.
    "v5_dense_layers": Variant(V5 | {
        "num_local_experts": 6, "norm_topk_prob": False, "decoder_sparse_step": 2,
        "mlp_only_layers": [3], "tie_word_embeddings": True}),
    "v5_fused": Variant(V5 | {
        "num_local_experts": 6, "norm_topk_prob": True, "decoder_sparse_step": 1,
        "mlp_only_layers": [1]}, options={"fused": True}),
    # The scales are powers of two. The router is not quantised.
    "v4_fp8": Variant(BASE | {
        "num_experts": 6, "norm_topk_prob": True, "num_hidden_layers": 2, "rope_theta": 1000000.0,
        "torch_dtype": "bfloat16", "quantization_config": {
            "quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
            "weight_block_size": [16, 16],
            "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate",
                                       "model.layers.1.mlp.gate"]}},
        "bfloat16", options={"fp8": True}),
    # One window for all layers.
    "v5_window": Variant(V5 | {
        "num_local_experts": 6, "norm_topk_prob": True, "use_sliding_window": True,
        "sliding_window": 8, "num_hidden_layers": 2}),
}


def experts(config: dict) -> int:
    return config.get("num_experts") or config["num_local_experts"]


def is_sparse(config: dict, layer: int) -> bool:
    return (layer not in (config.get("mlp_only_layers") or []) and
            (layer + 1) % config.get("decoder_sparse_step", 1) == 0)


def tensors(t: Tensors, config: dict, fused: bool = False, fp8: bool = False) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        plain = t.at(f"model.layers.{i}.")
        layer = plain.fp8(16, "F8_E8M0") if fp8 else plain
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("self_attn.q_norm", config["head_dim"])
        layer.norm("self_attn.k_norm", config["head_dim"])
        layer.norm("post_attention_layernorm", hidden)
        if is_sparse(config, i):
            plain.linear("mlp.gate", experts(config), hidden, gain=3.0)
            layer.experts("mlp.experts", experts(config), config["moe_intermediate_size"], hidden,
                          fused)
        else:
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
