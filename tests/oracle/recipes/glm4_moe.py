"""GLM-4 MoE: half of each head rotated, optional head norms, a sigmoid router with groups."""
from checkpoints import Tensors, Variant
from recipes.deepseek_v3 import prediction_layer, routed_experts

BASE = {"architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "head_dim": 16,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "first_k_dense_replace": 1,
        "moe_intermediate_size": 24, "n_routed_experts": 8, "n_shared_experts": 1,
        "num_experts_per_tok": 3, "norm_topk_prob": True, "num_nextn_predict_layers": 1}
VARIANTS = {
    "v4_head_norms": Variant(BASE | {
        "attention_bias": True, "use_qk_norm": True, "partial_rotary_factor": 0.5, "n_group": 1,
        "topk_group": 1, "routed_scaling_factor": 2.5, "rope_theta": 1000000,
        "rope_scaling": None, "torch_dtype": "bfloat16"}, "bfloat16"),
    # 4.5-Air; the rotated part is a default of the class.
    "v4_groups": Variant(BASE | {
        "attention_bias": True, "use_qk_norm": False, "n_group": 2, "topk_group": 1,
        "routed_scaling_factor": 1.0, "rope_theta": 1000000, "torch_dtype": "float32"}),
    "v5_plain": Variant(BASE | {
        "attention_bias": False, "use_qk_norm": True, "n_group": 4, "topk_group": 2,
        "norm_topk_prob": False, "routed_scaling_factor": 1.5, "num_nextn_predict_layers": 0,
        "dtype": "float32", "rope_parameters": {
            "rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.5}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, config["attention_bias"])
        if config["use_qk_norm"]:
            layer.norm("self_attn.q_norm", config["head_dim"])
            layer.norm("self_attn.k_norm", config["head_dim"])
        layer.norm("post_attention_layernorm", hidden)
        if i < config["first_k_dense_replace"]:
            layer.gated_mlp("mlp", config["intermediate_size"], hidden)
        else:
            routed_experts(layer, config, bias=True)
    if config["num_nextn_predict_layers"]:
        prediction_layer(t, config)
    t.norm("model.norm", hidden)
    t.head(config)
