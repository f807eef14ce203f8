"""Youtu-LLM: latent attention and plain MLPs."""
from checkpoints import Tensors, Variant
from recipes.deepseek_v3 import latent_attention

BASE = {"architectures": ["YoutuForCausalLM"], "model_type": "youtu", "hidden_act": "silu", "hidden_size": 48,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_key_value_heads": 4,
        "num_hidden_layers": 2, "rms_norm_eps": 0.01, "attention_bias": False, "q_lora_rank": 24, "kv_lora_rank": 20,
        "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 12}
VARIANTS = {
    "v4_hub": Variant(BASE | {"rope_theta": 1600000, "rope_interleave": True, "rope_scaling": None, "mlp_bias": False,
                              "tie_word_embeddings": True, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_half_split": Variant(BASE | {
        "q_lora_rank": None, "rope_interleave": False, "attention_bias": True, "tie_word_embeddings": False,
        "dtype": "float32", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        latent_attention(layer, config)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
