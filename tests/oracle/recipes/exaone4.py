"""EXAONE 4.0: norms of heads, norms after the branches alone, RoPE on layers with a window alone."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Exaone4ForCausalLM"], "model_type": "exaone4", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 4,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
VARIANTS = {
    # As the 32B, whose pattern is in letters beside the list.
    "v4_window": Variant(BASE | {
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
        "sliding_window": 8, "sliding_window_pattern": "LG", "rope_theta": 1000000.0, "rope_scaling": LLAMA3,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_pattern": Variant(BASE | {"sliding_window": 8, "sliding_window_pattern": 2, "dtype": "float32",
                                 "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
    # As the 1.2B: all layers are full and have RoPE.
    "v5_full": Variant(BASE | {
        "layer_types": ["full_attention"] * 4, "sliding_window": None, "tie_word_embeddings": True,
        "dtype": "float32", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, dim = config["hidden_size"], config["head_dim"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.attention(config)
        layer.norm("self_attn.q_norm", dim)
        layer.norm("self_attn.k_norm", dim)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
        layer.norm("post_feedforward_layernorm", hidden)
    t.norm("model.norm", hidden)
    t.head(config)
