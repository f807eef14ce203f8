"""StableLM: LayerNorm, partial RoPE, norms of heads with weights of their own, parallel branches."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["StableLmForCausalLM"], "model_type": "stablelm", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 2, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "layer_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    # As StableLM 3B and 2 1.6B.
    "v4_plain": Variant(BASE | {"use_qkv_bias": False, "partial_rotary_factor": 0.25, "rope_theta": 10000.0,
                                "torch_dtype": "bfloat16"}, "bfloat16"),
    # As StableLM 2 12B.
    "v4_parallel": Variant(BASE | {"num_attention_heads": 4, "num_key_value_heads": 2, "qk_layernorm": True,
                                   "use_parallel_residual": True, "partial_rotary_factor": 0.5,
                                   "rope_theta": 10000.0, "torch_dtype": "float32"}),
    "v5_biases": Variant(BASE | {"use_qkv_bias": True, "dtype": "float32", "rope_parameters": {
        "rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.25}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.attention(config, config.get("use_qkv_bias", False))
        if config.get("qk_layernorm"):
            for name, count in (("q", heads), ("k", config["num_key_value_heads"])):
                for head in range(count):
                    layer.norm(f"self_attn.{name}_layernorm.norms.{head}", hidden // heads)
        if not config.get("use_parallel_residual"):
            layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden, bias=True)
    t.head(config)
