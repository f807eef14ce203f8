"""DeepSeek V3: latent attention, dense first layers, sigmoid router with groups, FP8 blocks."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
        "hidden_act": "silu", "hidden_size": 48, "intermediate_size": 64,
        "max_position_embeddings": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 3, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "attention_bias": False, "q_lora_rank": 24, "kv_lora_rank": 20, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 8, "v_head_dim": 12, "first_k_dense_replace": 1,
        "moe_intermediate_size": 24, "n_routed_experts": 8, "n_shared_experts": 1,
        "num_experts_per_tok": 3, "n_group": 4, "topk_group": 2, "norm_topk_prob": True,
        "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
        "moe_layer_freq": 1, "ep_size": 1, "num_nextn_predict_layers": 1}
YARN = {"type": "yarn", "factor": 8.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 32}
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
       "weight_block_size": [16, 16]}
VARIANTS = {
    "v4_yarn": Variant(BASE | {
        "rope_theta": 10000.0,
        "rope_scaling": YARN | {"original_max_position_embeddings": 1024},
        "qk_rope_head_dim": 16, "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    # The sizes are no multiples of the block.
    "v4_fp8": Variant(BASE | {
        "rope_theta": 10000.0, "rope_scaling": YARN, "torch_dtype": "bfloat16",
        "quantization_config": FP8}, "bfloat16", options={"fp8": True}),
    # Queries without a latent; half-split RoPE; weights that are not renormalised.
    "v5_plain_q": Variant(BASE | {
        "q_lora_rank": None, "rope_interleave": False, "attention_bias": True,
        "norm_topk_prob": False, "n_group": 1, "topk_group": 1, "n_shared_experts": 2,
        "first_k_dense_replace": 0, "num_hidden_layers": 2, "num_nextn_predict_layers": 0,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "dtype": "float32"}),
}


def latent_attention(t: Tensors, config: dict) -> None:
    hidden, heads, bias = (config[key] for key in (
        "hidden_size", "num_attention_heads", "attention_bias"))
    nope, rope, value, latent = (config[key] for key in (
        "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank"))
    attention = t.at("self_attn.")
    if config["q_lora_rank"] is None:
        attention.linear("q_proj", heads * (nope + rope), hidden)
    else:
        attention.linear("q_a_proj", config["q_lora_rank"], hidden, bias)
        attention.norm("q_a_layernorm", config["q_lora_rank"])
        attention.linear("q_b_proj", heads * (nope + rope), config["q_lora_rank"])
    attention.linear("kv_a_proj_with_mqa", latent + rope, hidden, bias)
    attention.norm("kv_a_layernorm", latent)
    attention.linear("kv_b_proj", heads * (nope + value), latent)
    attention.linear("o_proj", hidden, heads * value, bias)


def routed_experts(t: Tensors, config: dict, bias: bool) -> None:
    hidden, width = config["hidden_size"], config["moe_intermediate_size"]
    t.add("mlp.gate.weight", (config["n_routed_experts"], hidden), std=3.0 / hidden ** 0.5)
    if bias:
        t.add("mlp.gate.e_score_correction_bias", (config["n_routed_experts"],), std=0.3,
              encoding="F32")
    t.experts("mlp.experts", config["n_routed_experts"], width, hidden, False)
    t.gated_mlp("mlp.shared_experts", width * config["n_shared_experts"], hidden)


def decoder_layer(t: Tensors, config: dict, index: int, bias: bool = True) -> None:
    hidden = config["hidden_size"]
    t.norm("input_layernorm", hidden)
    latent_attention(t, config)
    t.norm("post_attention_layernorm", hidden)
    if index >= config["first_k_dense_replace"]:
        routed_experts(t, config, bias)
    else:
        t.gated_mlp("mlp", config["intermediate_size"], hidden)


def prediction_layer(t: Tensors, config: dict) -> None:
    """Surplus: the layer after the last one predicts the token after the next."""
    for name in ("embed_tokens", "enorm", "hnorm", "eh_proj", "shared_head.norm",
                 "shared_head.head", "input_layernorm", "self_attn.o_proj",
                 "mlp.experts.0.gate_proj"):
        t.surplus(f"model.layers.{config['num_hidden_layers']}.{name}.weight")


def tensors(t: Tensors, config: dict, fp8: bool = False) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        decoder_layer(layer.fp8(16) if fp8 else layer, config, i)
    if config["num_nextn_predict_layers"]:
        prediction_layer(t, config)
    t.norm("model.norm", hidden)
    t.head(config)
