"""ERNIE 4.5 with experts: interleaved RoPE, a softmax router whose choice has a bias, and shared experts."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Ernie4_5_MoeForCausalLM"], "model_type": "ernie4_5_moe", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 4, "num_key_value_heads": 2, "rms_norm_eps": 0.01, "moe_intermediate_size": 24,
        "moe_k": 3, "moe_num_experts": 8}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "moe_capacity": [64, 64, 64], "moe_gate": "topk", "moe_layer_end_index": 3, "moe_layer_interval": 1,
        "moe_layer_start_index": 1, "moe_num_shared_experts": 2, "moe_use_aux_free": True,
        "num_nextn_predict_layers": 1, "rope_theta": 500000.0, "tie_word_embeddings": True, "use_bias": False,
        "torch_dtype": "bfloat16"}, "bfloat16", options={"mtp": True}),
    # Every second layer has experts, none of them shared; the last layer is dense by the end index.
    "v5_biases": Variant(BASE | {
        "moe_layer_end_index": 2, "moe_layer_interval": 2, "moe_layer_start_index": 0, "moe_num_shared_experts": 0,
        "tie_word_embeddings": False, "use_bias": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
    # All layers have experts; an end of -1 is the last layer.
    "v5_all": Variant(BASE | {
        "moe_layer_end_index": -1, "moe_layer_start_index": 0, "moe_num_shared_experts": 1, "num_hidden_layers": 2,
        "tie_word_embeddings": False, "use_bias": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def has_experts(config: dict, layer: int) -> bool:
    last = config["moe_layer_end_index"] % config["num_hidden_layers"]
    return (layer + 1) % config.get("moe_layer_interval", 1) == 0 and config["moe_layer_start_index"] <= layer <= last


def tensors(t: Tensors, config: dict, mtp: bool = False) -> None:
    hidden, bias, experts = config["hidden_size"], config["use_bias"], config["moe_num_experts"]
    width = config["moe_intermediate_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        if not has_experts(config, i):
            layer.gated_mlp("mlp", config["intermediate_size"], hidden, bias)
            continue
        layer.add("mlp.gate.weight", (experts, hidden), std=3.0 / hidden ** 0.5, encoding="F32")
        layer.add("mlp.moe_statics.e_score_correction_bias", (1, experts), std=0.3, encoding="F32")
        layer.experts("mlp.experts", experts, width, hidden, False)
        if config["moe_num_shared_experts"]:
            layer.gated_mlp("mlp.shared_experts", width * config["moe_num_shared_experts"], hidden, bias)
    if mtp:
        t.surplus("model.mtp_block.0.self_attn.q_proj.weight")
        t.surplus("model.mtp_linear_proj.0.weight")
    t.norm("model.norm", hidden)
    t.head(config)
    if bias:
        t.add("lm_head.bias", (config["vocab_size"],), std=0.3)
