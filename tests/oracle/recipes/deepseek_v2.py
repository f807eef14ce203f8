"""DeepSeek V2: latent attention; a softmax router whose weights are not renormalised."""
from checkpoints import Tensors, Variant
from recipes.deepseek_v3 import decoder_layer

BASE = {"architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
        "hidden_act": "silu", "hidden_size": 48, "intermediate_size": 64,
        "max_position_embeddings": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 3, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "attention_bias": False, "kv_lora_rank": 20, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
        "v_head_dim": 12, "first_k_dense_replace": 1, "moe_intermediate_size": 24,
        "n_routed_experts": 8, "n_shared_experts": 2, "num_experts_per_tok": 3,
        "norm_topk_prob": False, "scoring_func": "softmax", "moe_layer_freq": 1}
YARN = {"type": "yarn", "factor": 8.0, "beta_fast": 32, "beta_slow": 1, "mscale": 0.707,
        "mscale_all_dim": 0.707, "original_max_position_embeddings": 32}
VARIANTS = {
    # V2-Lite.
    "v4_lite": Variant(BASE | {
        "q_lora_rank": None, "n_group": 1, "topk_group": 1, "topk_method": "greedy",
        "routed_scaling_factor": 1.0, "rope_theta": 10000.0,
        "rope_scaling": YARN | {"original_max_position_embeddings": 1024},
        "qk_rope_head_dim": 16, "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    # V2: groups, a factor, a latent for queries; mscale alone does not touch the scale.
    "v4_groups": Variant(BASE | {
        "q_lora_rank": 24, "n_group": 4, "topk_group": 2, "topk_method": "group_limited_greedy",
        "routed_scaling_factor": 4.0, "rope_theta": 10000.0, "torch_dtype": "float32",
        "rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 0.5}}),
    # `norm_topk_prob` changes nothing.
    "v5_default_rope": Variant(BASE | {
        "q_lora_rank": 24, "norm_topk_prob": True, "topk_method": "greedy", "n_group": None,
        "topk_group": None, "routed_scaling_factor": 1.5, "attention_bias": True,
        "first_k_dense_replace": 0, "num_hidden_layers": 2, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        decoder_layer(t.at(f"model.layers.{i}."), config, i, bias=False)
    t.norm("model.norm", hidden)
    t.head(config)
