"""Phi-2: LayerNorm, parallel branches, partial RoPE, biases everywhere, also of the head."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["PhiForCausalLM"], "model_type": "phi", "hidden_act": "gelu_new", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 2, "num_hidden_layers": 2,
        "layer_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_phi2": Variant(BASE | {"num_key_value_heads": 2, "partial_rotary_factor": 0.25, "qk_layernorm": False,
                               "rope_theta": 10000.0, "rope_scaling": None, "torch_dtype": "float16"}, "float16"),
    "v5_head_norms": Variant(BASE | {
        "num_attention_heads": 4, "num_key_value_heads": 2, "qk_layernorm": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.5}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    dim, kv_heads = hidden // heads, config["num_key_value_heads"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.linear("self_attn.q_proj", hidden, hidden, True)
        layer.linear("self_attn.k_proj", kv_heads * dim, hidden, True)
        layer.linear("self_attn.v_proj", kv_heads * dim, hidden, True)
        layer.linear("self_attn.dense", hidden, hidden, True)
        if config["qk_layernorm"]:
            layer.norm("self_attn.q_layernorm", dim, bias=True)
            layer.norm("self_attn.k_layernorm", dim, bias=True)
        layer.linear("mlp.fc1", config["intermediate_size"], hidden, True)
        layer.linear("mlp.fc2", hidden, config["intermediate_size"], True)
    t.norm("model.final_layernorm", hidden, bias=True)
    t.linear("lm_head", config["vocab_size"], hidden, True)
