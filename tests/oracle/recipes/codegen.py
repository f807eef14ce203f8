"""CodeGen: GPT-J with one matrix of four blocks, each with queries, values and keys of its heads."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["CodeGenForCausalLM"], "model_type": "codegen", "activation_function": "gelu_new",
        "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 256, "n_ctx": 256, "n_inner": None, "rotary_dim": 8,
        "layer_norm_epsilon": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_masks": Variant(BASE | {"torch_dtype": "float16"}, "float16", options={"masks": True}),
    "v5_two_heads_a_block": Variant(BASE | {"n_head": 8, "rotary_dim": 4, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict, masks: bool = False) -> None:
    hidden = config["n_embd"]
    t.embedding("transformer.wte", config["vocab_size"], hidden)
    for i in range(config["n_layer"]):
        layer = t.at(f"transformer.h.{i}.")
        layer.norm("ln_1", hidden, bias=True)
        layer.linear("attn.qkv_proj", 3 * hidden, hidden)
        layer.linear("attn.out_proj", hidden, hidden)
        layer.linear("mlp.fc_in", 4 * hidden, hidden, True)
        layer.linear("mlp.fc_out", hidden, 4 * hidden, True)
        if masks:
            layer.surplus("attn.causal_mask", (1, 1, 8, 8))
    t.norm("transformer.ln_f", hidden, bias=True)
    t.linear("lm_head", config["vocab_size"], hidden, True)
