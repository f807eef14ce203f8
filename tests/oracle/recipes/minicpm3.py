"""MiniCPM 3: latent attention with half-split RoPE, multipliers of embedding, branches and logits."""
from checkpoints import Tensors, Variant
from recipes.youtu import tensors as latent_tensors

BASE = {"architectures": ["MiniCPM3ForCausalLM"], "model_type": "minicpm3", "hidden_act": "silu", "hidden_size": 48,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 3, "rms_norm_eps": 0.01, "attention_bias": False, "q_lora_rank": 24, "kv_lora_rank": 20,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 8}
SHORT, LONG = [1.0, 1.1, 1.3, 1.2], [1.5, 2.0, 4.0, 6.0]
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "dim_model_base": 16, "scale_depth": 1.4, "scale_emb": 2, "tie_word_embeddings": True, "v_head_dim": 12,
        "rope_theta": 10000.0, "rope_scaling": {
            "type": "longrope", "short_factor": SHORT, "long_factor": LONG, "original_max_position_embeddings": 128},
        "torch_dtype": "bfloat16"}, "bfloat16", length_rule="whole", original_length=128),
    "v5_plain": Variant(BASE | {
        "dim_model_base": None, "scale_depth": None, "scale_emb": 1, "tie_word_embeddings": False,
        "q_lora_rank": None, "attention_bias": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    latent_tensors(t, {"v_head_dim": config["hidden_size"] // config["num_attention_heads"]} | config)
