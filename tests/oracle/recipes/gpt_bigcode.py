"""StarCoder and SantaCoder: GPT-2 with one K/V head and matrices as linear layers have them."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GPTBigCodeForCausalLM"], "model_type": "gpt_bigcode", "n_embd": 32, "n_head": 4,
        "n_layer": 2, "n_positions": 256, "n_inner": 64, "layer_norm_epsilon": 0.01, "attention_softmax_in_fp32": True,
        "scale_attention_softmax_in_fp32": True}
VARIANTS = {
    "v4_one_key": Variant(BASE | {"activation_function": "gelu_pytorch_tanh", "multi_query": True,
                                  "scale_attn_weights": True, "torch_dtype": "float16"}, "float16"),
    # As many K/V heads as query heads: q|k|v of each head.
    "v5_by_head": Variant(BASE | {"activation_function": "gelu", "multi_query": False, "n_inner": None,
                                  "tie_word_embeddings": False, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["n_embd"]
    width = config["n_inner"] or 4 * hidden
    kv_width = hidden // config["n_head"] if config["multi_query"] else hidden
    t.embedding("transformer.wte", config["vocab_size"], hidden)
    t.embedding("transformer.wpe", config["n_positions"], hidden)
    for i in range(config["n_layer"]):
        layer = t.at(f"transformer.h.{i}.")
        layer.norm("ln_1", hidden, bias=True)
        layer.linear("attn.c_attn", hidden + 2 * kv_width, hidden, True)
        layer.linear("attn.c_proj", hidden, hidden, True)
        layer.norm("ln_2", hidden, bias=True)
        layer.linear("mlp.c_fc", width, hidden, True)
        layer.linear("mlp.c_proj", hidden, width, True)
    t.norm("transformer.ln_f", hidden, bias=True)
    t.head({"tie_word_embeddings": True} | config)
