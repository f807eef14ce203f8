"""XGLM: a scaled embedding, sines and cosines of the position, biases everywhere."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["XGLMForCausalLM"], "model_type": "xglm", "d_model": 32, "ffn_dim": 64, "num_layers": 2,
        "attention_heads": 4, "max_position_embeddings": 256}
VARIANTS = {
    "v4_hub": Variant(BASE | {"activation_function": "gelu", "scale_embedding": True, "torch_dtype": "float16"},
                      "float16"),
    "v5_unscaled": Variant(BASE | {"activation_function": "relu", "scale_embedding": False,
                                   "tie_word_embeddings": False, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, width = config["d_model"], config["ffn_dim"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("self_attn_layer_norm", hidden, bias=True)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            layer.linear("self_attn." + name, hidden, hidden, True)
        layer.norm("final_layer_norm", hidden, bias=True)
        layer.linear("fc1", width, hidden, True)
        layer.linear("fc2", hidden, width, True)
    t.norm("model.layer_norm", hidden, bias=True)
    if config.get("tie_word_embeddings") is False:
        t.linear("lm_head", config["vocab_size"], hidden)
