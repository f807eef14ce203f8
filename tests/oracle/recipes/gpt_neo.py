"""GPT-Neo: local and global layers in turn, products that are not scaled, biases but for q, k and v."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GPTNeoForCausalLM"], "model_type": "gpt_neo", "hidden_size": 32, "num_heads": 4,
        "layer_norm_epsilon": 0.01, "max_position_embeddings": 256, "activation_function": "gelu_new"}
VARIANTS = {
    # Old files hold the masks.
    "v4_masks": Variant(BASE | {
        "num_layers": 4, "attention_layers": ["global", "local", "global", "local"],
        "attention_types": [[["global", "local"], 2]], "intermediate_size": None, "window_size": 8,
        "torch_dtype": "float16"}, "float16", options={"masks": True}),
    "v5_untied": Variant(BASE | {
        "num_layers": 3, "attention_layers": ["local", "local", "global"],
        "attention_types": [[["local"], 2], [["global"], 1]], "intermediate_size": 48, "window_size": 16,
        "activation_function": "gelu", "tie_word_embeddings": False, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict, masks: bool = False) -> None:
    hidden, width = config["hidden_size"], config["intermediate_size"] or 4 * config["hidden_size"]
    t.embedding("transformer.wte", config["vocab_size"], hidden)
    t.embedding("transformer.wpe", config["max_position_embeddings"], hidden)
    for i in range(config["num_layers"]):
        layer = t.at(f"transformer.h.{i}.")
        layer.norm("ln_1", hidden, bias=True)
        for name in ("q_proj", "k_proj", "v_proj"):
            layer.linear(f"attn.attention.{name}", hidden, hidden, gain=1.0)
        layer.linear("attn.attention.out_proj", hidden, hidden, True)
        if masks:
            layer.surplus("attn.attention.bias", (1, 1, 4, 4))
            layer.surplus("attn.attention.masked_bias", (1,))
        layer.norm("ln_2", hidden, bias=True)
        layer.linear("mlp.c_fc", width, hidden, True)
        layer.linear("mlp.c_proj", hidden, width, True)
    t.norm("transformer.ln_f", hidden, bias=True)
    t.head({"tie_word_embeddings": True} | config)
