"""Apertus: norms of heads and an MLP with an xIELU."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["ApertusForCausalLM"], "model_type": "apertus", "hidden_act": "xielu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "attention_bias": False, "mlp_bias": False, "post_norm": False, "qk_norm": True, "rope_theta": 12000000,
        "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                         "original_max_position_embeddings": 64, "rope_type": "llama3", "type": "llama3"},
        "torch_dtype": "bfloat16"}, "bfloat16"),
    # RoPE is the default of the class.
    "v5_biases": Variant(BASE | {"attention_bias": True, "num_key_value_heads": 4, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias = config["hidden_size"], config["attention_bias"]
    dim = hidden // config["num_attention_heads"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("attention_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("self_attn.q_norm", dim)
        layer.norm("self_attn.k_norm", dim)
        layer.norm("feedforward_layernorm", hidden)
        layer.linear("mlp.up_proj", config["intermediate_size"], hidden, gain=1.0)
        layer.linear("mlp.down_proj", hidden, config["intermediate_size"])
        layer.add("mlp.act_fn.alpha_p", (1,), std=0.5)
        layer.add("mlp.act_fn.alpha_n", (1,), std=0.5)
        layer.add("mlp.act_fn.beta", (), mean=0.5, std=0.0)
        layer.add("mlp.act_fn.eps", (), mean=-1e-6, std=0.0)
    t.norm("model.norm", hidden)
    t.head(config)
