"""GPT-J: parallel branches, interleaved RoPE on some dimensions, a head with a bias."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GPTJForCausalLM"], "model_type": "gptj", "activation_function": "gelu_new", "n_embd": 32,
        "n_head": 2, "n_layer": 2, "n_positions": 256, "n_inner": None, "rotary_dim": 8, "layer_norm_epsilon": 0.01,
        "tie_word_embeddings": False}
VARIANTS = {
    # As published, with the masks that old files hold.
    "v4_masks": Variant(BASE | {"torch_dtype": "float16"}, "float16", options={"masks": True}),
    "v5_inner": Variant(BASE | {"n_head": 4, "rotary_dim": 4, "n_inner": 48, "activation_function": "gelu",
                                "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict, masks: bool = False) -> None:
    hidden = config["n_embd"]
    width = config["n_inner"] or 4 * hidden
    t.embedding("transformer.wte", config["vocab_size"], hidden)
    for i in range(config["n_layer"]):
        layer = t.at(f"transformer.h.{i}.")
        layer.norm("ln_1", hidden, bias=True)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            layer.linear("attn." + name, hidden, hidden)
        layer.linear("mlp.fc_in", width, hidden, True)
        layer.linear("mlp.fc_out", hidden, width, True)
        if masks:
            layer.surplus("attn.bias", (1, 1, 8, 8))
            layer.surplus("attn.masked_bias", ())
    t.norm("transformer.ln_f", hidden, bias=True)
    t.linear("lm_head", config["vocab_size"], hidden, True)
