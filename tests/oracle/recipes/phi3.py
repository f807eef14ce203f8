"""Phi-3: fused q|k|v and gate|up rows, longrope, partial RoPE, windows."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "pad_token_id": 0}
SHORT, LONG = [1.0, 1.1, 1.3, 1.2], [1.5, 2.0, 4.0, 6.0]
VARIANTS = {
    "v4_window": Variant(BASE | {
        "original_max_position_embeddings": 256, "rope_theta": 10000.0, "rope_scaling": None,
        "sliding_window": 9, "torch_dtype": "bfloat16"}, "bfloat16"),
    # Phi-4-mini: tied, three quarters of a head are rotated; the prompt needs the long factors.
    "v4_longrope_partial": Variant(BASE | {
        "original_max_position_embeddings": 64, "rope_theta": 10000.0, "sliding_window": 262144,
        "partial_rotary_factor": 0.75, "tie_word_embeddings": True, "torch_dtype": "float32",
        "rope_scaling": {"type": "longrope", "short_factor": SHORT[:3], "long_factor": LONG[:3]}},
        length_rule="whole", original_length=64),
    # "su" is the first name of longrope. transformers 5.23 fails on it without a length beside it.
    "v4_su_crossing": Variant(BASE | {
        "original_max_position_embeddings": 100, "rope_theta": 10000.0, "torch_dtype": "float32",
        "sliding_window": 40, "rope_scaling": {
            "type": "su", "short_factor": SHORT, "long_factor": LONG}},
        oracle={"rope_scaling": {"type": "longrope", "short_factor": SHORT, "long_factor": LONG}},
        length_rule="whole", original_length=100),
    "v5_short": Variant(BASE | {
        "original_max_position_embeddings": 128, "dtype": "float32", "sliding_window": None,
        "rope_parameters": {
            "rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75,
            "original_max_position_embeddings": 128, "short_factor": SHORT[:3],
            "long_factor": LONG[:3]}},
        length_rule="whole", original_length=128),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    rows = hidden + 2 * config["num_key_value_heads"] * (hidden // heads)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.linear("self_attn.qkv_proj", rows, hidden)
        layer.linear("self_attn.o_proj", hidden, hidden)
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("mlp.gate_up_proj", 2 * config["intermediate_size"], hidden)
        layer.linear("mlp.down_proj", hidden, config["intermediate_size"])
    t.norm("model.norm", hidden)
    t.head(config)
