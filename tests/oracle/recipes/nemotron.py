"""Nemotron: LayerNorm that multiplies by 1 + weight, partial RoPE, an MLP that squares what it keeps."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["NemotronForCausalLM"], "model_type": "nemotron", "hidden_act": "relu2", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_minitron": Variant(BASE | {"attention_bias": False, "mlp_bias": False, "head_dim": 16,
                                   "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
                                   "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {"attention_bias": True, "mlp_bias": True, "dtype": "float32", "rope_parameters": {
        "rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 0.25}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias, mlp_bias = config["hidden_size"], config["attention_bias"], config["mlp_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True, around=0.0)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden, bias=True, around=0.0)
        layer.linear("mlp.up_proj", config["intermediate_size"], hidden, mlp_bias, gain=1.0)
        layer.linear("mlp.down_proj", hidden, config["intermediate_size"], mlp_bias)
    t.norm("model.norm", hidden, bias=True, around=0.0)
    t.head(config)
