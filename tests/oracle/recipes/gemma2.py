"""Gemma 2: four norms a layer, softcaps of attention and logits, windows on even layers."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 3, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01,
        "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 24,
        "sliding_window": 8}
VARIANTS = {
    # The caps apply: they are small.
    "v4_softcaps": Variant(BASE | {
        "hidden_act": "gelu_pytorch_tanh", "attn_logit_softcapping": 3.0,
        "final_logit_softcapping": 6.0, "rope_theta": 10000.0, "torch_dtype": "bfloat16"},
        "bfloat16"),
    # Caps of 50 and 30 by default.
    "v5_layer_types": Variant(BASE | {
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"],
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "dtype": "float32"}),
    "v5_no_softcaps": Variant(BASE | {
        "attn_logit_softcapping": None, "final_logit_softcapping": None, "attention_bias": True,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "dtype": "float32"}),
}


def four_norms(t: Tensors, hidden: int, around: float = 0.0) -> None:
    for name in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                 "post_feedforward_layernorm"):
        t.norm(name, hidden, around=around)


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config.get("attention_bias", False)
    t.embedding("model.embed_tokens", config["vocab_size"], hidden, std=0.1)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        four_norms(layer, hidden)
        layer.attention(config, bias, bias)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden, around=2.0)
