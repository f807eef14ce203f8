"""AFM: Llama with an MLP without a gate that squares what it keeps."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["ArceeForCausalLM"], "model_type": "arcee", "hidden_act": "relu2", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32.0,
        "beta_slow": 1.0}
VARIANTS = {
    "v4_yarn": Variant(BASE | {"attention_bias": False, "mlp_bias": False, "rope_theta": 10000.0,
                              "rope_scaling": YARN, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant({key: value for key, value in BASE.items() if key != "hidden_act"} | {
        "attention_bias": True, "mlp_bias": True, "head_dim": 8, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, bias, mlp_bias = config["hidden_size"], config["attention_bias"], config["mlp_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("mlp.up_proj", config["intermediate_size"], hidden, mlp_bias, gain=1.0)
        layer.linear("mlp.down_proj", hidden, config["intermediate_size"], mlp_bias)
    t.norm("model.norm", hidden)
    t.head(config)
