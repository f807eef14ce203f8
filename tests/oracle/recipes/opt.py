"""OPT: learned positions from 2, norms before or after, projections in and out."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["OPTForCausalLM"], "model_type": "opt", "hidden_size": 32, "ffn_dim": 64,
        "max_position_embeddings": 128, "num_attention_heads": 4, "num_hidden_layers": 2,
        "activation_function": "relu", "pad_token_id": 1}
VARIANTS = {
    "v4_pre_norm": Variant(BASE | {
        "do_layer_norm_before": True, "word_embed_proj_dim": 32, "torch_dtype": "float16"},
        "float16"),
    # The 350m model.
    "v4_post_norm": Variant(BASE | {
        "do_layer_norm_before": False, "word_embed_proj_dim": 16, "torch_dtype": "float32"}),
    # Galactica.
    "v4_bare": Variant(BASE | {
        "activation_function": "gelu", "enable_bias": False,
        "layer_norm_elementwise_affine": False, "word_embed_proj_dim": 32,
        "torch_dtype": "float32"}),
    "v5_untied": Variant(BASE | {
        "_remove_final_layer_norm": True, "tie_word_embeddings": False, "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, width = config["hidden_size"], config["ffn_dim"]
    words = config.get("word_embed_proj_dim") or hidden
    bias = config.get("enable_bias", True)
    norms = config.get("layer_norm_elementwise_affine", True)
    before = config.get("do_layer_norm_before", True)
    decoder = t.at("model.decoder.")
    decoder.embedding("embed_tokens", config["vocab_size"], words)
    decoder.embedding("embed_positions", config["max_position_embeddings"] + 2, hidden)
    if words != hidden:
        decoder.linear("project_in", hidden, words)
        decoder.linear("project_out", words, hidden)
    for i in range(config["num_hidden_layers"]):
        layer = decoder.at(f"layers.{i}.")
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            layer.linear("self_attn." + name, hidden, hidden, bias)
        layer.linear("fc1", width, hidden, bias)
        layer.linear("fc2", hidden, width, bias)
        if norms:
            layer.norm("self_attn_layer_norm", hidden, bias=True)
            layer.norm("final_layer_norm", hidden, bias=True)
    if norms and before and not config.get("_remove_final_layer_norm", False):
        decoder.norm("final_layer_norm", hidden, bias=True)
    t.head(config | {"tie_word_embeddings": config.get("tie_word_embeddings", True)})
