"""GPT-2: learned positions, LayerNorm, weights stored [in, out], with and without a prefix."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 32, "n_layer": 2,
        "n_head": 4, "n_positions": 128, "n_ctx": 128, "activation_function": "gelu_new",
        "layer_norm_epsilon": 0.01}
VARIANTS = {
    # As the hub has it: no prefix, and the causal masks are stored.
    "v4_bare": Variant(BASE | {"torch_dtype": "float32"}, options={"prefix": "", "masks": True}),
    "v4_prefixed": Variant(BASE | {
        "n_inner": None, "torch_dtype": "float16", "scale_attn_weights": True}, "float16",
        options={"prefix": "transformer."}),
    "v5_untied": Variant(BASE | {
        "n_inner": 48, "tie_word_embeddings": False, "activation_function": "gelu",
        "scale_attn_by_inverse_layer_idx": True, "dtype": "float32"},
        options={"prefix": "transformer."}),
    "v5_unscaled": Variant(BASE | {
        "activation_function": "relu", "scale_attn_weights": False,
        "reorder_and_upcast_attn": True, "dtype": "bfloat16"}, "bfloat16",
        options={"prefix": "transformer."}),
}


def tensors(t: Tensors, config: dict, prefix: str, masks: bool = False) -> None:
    hidden, width = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    t.embedding(prefix + "wte", config["vocab_size"], hidden)
    t.embedding(prefix + "wpe", config["n_positions"], hidden)
    for i in range(config["n_layer"]):
        layer = t.at(f"{prefix}h.{i}.")
        layer.norm("ln_1", hidden, bias=True)
        layer.transposed("attn.c_attn", 3 * hidden, hidden)
        layer.transposed("attn.c_proj", hidden, hidden)
        layer.norm("ln_2", hidden, bias=True)
        layer.transposed("mlp.c_fc", width, hidden)
        layer.transposed("mlp.c_proj", hidden, width)
        if masks:
            layer.surplus("attn.bias", (1, 1, 8, 8))
            layer.surplus("attn.masked_bias", ())
    t.norm(prefix + "ln_f", hidden, bias=True)
    t.head(config | {"tie_word_embeddings": config.get("tie_word_embeddings", True)})
