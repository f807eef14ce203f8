"""Mixtral: softmax over the chosen experts; w1 is gate, w3 up, w2 down."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "num_local_experts": 6}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "num_experts_per_tok": 2, "rope_theta": 1000000.0, "sliding_window": None,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    # No theta in the file: 1e6 is the default of the class.
    "v5_window": Variant(BASE | {
        "num_experts_per_tok": 3, "sliding_window": 8, "head_dim": 16, "dtype": "float32",
        "tie_word_embeddings": True}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, width = config["hidden_size"], config["intermediate_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("block_sparse_moe.gate", config["num_local_experts"], hidden, gain=3.0)
        for expert in range(config["num_local_experts"]):
            layer.linear(f"block_sparse_moe.experts.{expert}.w1", width, hidden)
            layer.linear(f"block_sparse_moe.experts.{expert}.w2", hidden, width)
            layer.linear(f"block_sparse_moe.experts.{expert}.w3", width, hidden)
    t.norm("model.norm", hidden)
    t.head(config)
