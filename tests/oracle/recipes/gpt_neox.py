"""GPT-NeoX: two LayerNorms in parallel or in sequence, partial RoPE, q|k|v of each head."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 2, "layer_norm_eps": 0.01, "hidden_act": "gelu"}
VARIANTS = {
    # As Pythia has it: masks and frequencies are stored.
    "v4_parallel": Variant(BASE | {
        "rotary_pct": 0.5, "rotary_emb_base": 10000, "use_parallel_residual": True,
        "tie_word_embeddings": False, "torch_dtype": "float16"}, "float16",
        options={"masks": True}),
    "v4_defaults": Variant({key: value for key, value in BASE.items() if key not in (
        "hidden_act", "layer_norm_eps")} | {"num_attention_heads": 2, "torch_dtype": "float32"}),
    "v5_sequential": Variant(BASE | {
        "num_attention_heads": 2, "hidden_act": "gelu_new", "use_parallel_residual": False, "attention_bias": True,
        "dtype": "float32", "rope_parameters": {
            "rope_theta": 5000.0, "rope_type": "default", "partial_rotary_factor": 0.25}}),
    "v5_no_bias_linear": Variant(BASE | {
        "hidden_act": "gelu_fast", "attention_bias": False, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "linear", "factor": 4.0,
                            "partial_rotary_factor": 1.0}}),
}


def tensors(t: Tensors, config: dict, masks: bool = False) -> None:
    hidden, bias = config["hidden_size"], config.get("attention_bias", True)
    t.embedding("gpt_neox.embed_in", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"gpt_neox.layers.{i}.")
        layer.norm("input_layernorm", hidden, bias=True)
        layer.norm("post_attention_layernorm", hidden, bias=True)
        layer.linear("attention.query_key_value", 3 * hidden, hidden, bias)
        layer.linear("attention.dense", hidden, hidden, bias)
        layer.linear("mlp.dense_h_to_4h", config["intermediate_size"], hidden, True)
        layer.linear("mlp.dense_4h_to_h", hidden, config["intermediate_size"], True)
        if masks:
            layer.surplus("attention.bias", (1, 1, 8, 8))
            layer.surplus("attention.masked_bias", ())
            layer.surplus("attention.rotary_emb.inv_freq", (2,))
    t.norm("gpt_neox.final_layer_norm", hidden, bias=True)
    t.head(config, "embed_out")
