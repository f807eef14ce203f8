"""BLOOM: linear biases of attention, a norm of the embedding, q|k|v of each head."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["BloomForCausalLM"], "model_type": "bloom", "hidden_size": 32, "n_head": 4, "n_layer": 2,
        "layer_norm_epsilon": 0.01}
VARIANTS = {
    # As the first files: without the prefix, other names of the sizes.
    "v4_bare": Variant({key: value for key, value in BASE.items() if key not in ("hidden_size", "n_head")} | {
        "n_embed": 32, "num_attention_heads": 4, "seq_length": 256, "torch_dtype": "float16"}, "float16",
        options={"prefix": ""}),
    # Six heads: the slopes are of two series.
    "v4_six_heads": Variant(BASE | {"hidden_size": 48, "n_head": 6, "torch_dtype": "float32"}),
    "v5_untied": Variant(BASE | {"n_head": 2, "tie_word_embeddings": False, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict, prefix: str = "transformer.") -> None:
    hidden = config.get("hidden_size") or config["n_embed"]
    t.embedding(prefix + "word_embeddings", config["vocab_size"], hidden)
    t.norm(prefix + "word_embeddings_layernorm", hidden, bias=True)
    for i in range(config["n_layer"]):
        layer = t.at(f"{prefix}h.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.linear("self_attention.query_key_value", 3 * hidden, hidden, True)
        layer.linear("self_attention.dense", hidden, hidden, True)
        layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.linear("mlp.dense_h_to_4h", 4 * hidden, hidden, True)
        layer.linear("mlp.dense_4h_to_h", hidden, 4 * hidden, True)
    t.norm(prefix + "ln_f", hidden, bias=True)
    if config.get("tie_word_embeddings") is False:
        t.linear("lm_head", config["vocab_size"], hidden)
