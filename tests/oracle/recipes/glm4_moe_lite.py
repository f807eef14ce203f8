"""GLM-4.7-Flash: latent attention, dense first layers, a sigmoid router with groups."""
from checkpoints import Tensors, Variant
from recipes.deepseek_v3 import decoder_layer, prediction_layer

BASE = {"architectures": ["Glm4MoeLiteForCausalLM"], "model_type": "glm4_moe_lite", "hidden_act": "silu",
        "hidden_size": 48, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_key_value_heads": 4, "num_hidden_layers": 3, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "attention_bias": False, "q_lora_rank": 24, "kv_lora_rank": 20, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
        "v_head_dim": 12, "moe_intermediate_size": 24, "n_routed_experts": 8, "n_shared_experts": 1,
        "num_experts_per_tok": 3}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "first_k_dense_replace": 1, "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "partial_rotary_factor": 1.0,
        "num_nextn_predict_layers": 1, "rope_theta": 1000000, "rope_scaling": None, "routed_scaling_factor": 1.8,
        "topk_method": "noaux_tc", "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_groups": Variant(BASE | {
        "mlp_layer_types": ["sparse", "dense", "sparse"], "n_group": 4, "topk_group": 2, "norm_topk_prob": False,
        "rope_interleave": False, "q_lora_rank": None, "dtype": "float32", "num_nextn_predict_layers": 0,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    kinds = config.get("mlp_layer_types", ["dense", "sparse", "sparse"])
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i, kind in enumerate(kinds):
        dense = {"first_k_dense_replace": i + 1 if kind == "dense" else 0}
        decoder_layer(t.at(f"model.layers.{i}."), config | dense, i)
    if config["num_nextn_predict_layers"]:
        prediction_layer(t, config)
    t.norm("model.norm", hidden)
    t.head(config)
