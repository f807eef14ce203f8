"""Gemma: norms that multiply by 1 + weight, tanh GELU, the embedding times sqrt(hidden)."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GemmaForCausalLM"], "model_type": "gemma", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01}
VARIANTS = {
    # The hub says "gelu" and means the tanh form; tied without a key.
    "v4_gelu": Variant(BASE | {
        "hidden_act": "gelu", "hidden_activation": None, "rope_theta": 10000.0,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    # One key head.
    "v5_mqa": Variant(BASE | {
        "hidden_act": "gelu_pytorch_tanh", "num_key_value_heads": 1, "tie_word_embeddings": True,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden, std=0.1)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, around=0.0)
        layer.attention(config)
        layer.norm("post_attention_layernorm", hidden, around=0.0)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden, around=2.0)
