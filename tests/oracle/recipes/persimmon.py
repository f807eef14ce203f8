"""Persimmon: q|k|v of each head, norms of heads, partial RoPE, an MLP that squares what it keeps."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["PersimmonForCausalLM"], "model_type": "persimmon", "hidden_act": "relu2",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 2, "layer_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {"qk_layernorm": True, "partial_rotary_factor": 0.5, "rope_theta": 25000.0,
                              "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_no_head_norms": Variant(BASE | {"qk_layernorm": False, "num_attention_heads": 2, "dtype": "float32",
                                        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default",
                                                            "partial_rotary_factor": 0.25}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, width = config["hidden_size"], config["intermediate_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.linear("self_attn.query_key_value", 3 * hidden, hidden, True)
        layer.linear("self_attn.dense", hidden, hidden, True)
        if config["qk_layernorm"]:
            layer.norm("self_attn.q_layernorm", hidden // config["num_attention_heads"], bias=True)
            layer.norm("self_attn.k_layernorm", hidden // config["num_attention_heads"], bias=True)
        layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.linear("mlp.dense_h_to_4h", width, hidden, True, gain=1.0)
        layer.linear("mlp.dense_4h_to_h", hidden, width, True)
    t.norm("model.final_layernorm", hidden, bias=True)
    t.head(config)
