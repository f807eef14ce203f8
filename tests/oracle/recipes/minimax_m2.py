"""MiniMax-M2: norms over all query heads and over all key heads, partial RoPE, experts chosen by sigmoids."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["MiniMaxM2ForCausalLM"], "model_type": "minimax_m2", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 24, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False,
        "num_local_experts": 6, "num_experts_per_tok": 3}
VARIANTS = {
    "v4_hub": Variant(BASE | {"rotary_dim": 8, "rope_theta": 5000000.0, "scoring_func": "sigmoid",
                              "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_whole_rope": Variant(BASE | {"num_key_value_heads": 4, "dtype": "float32", "rope_parameters": {
        "rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, dim, width = config["hidden_size"], config["head_dim"], config["intermediate_size"]
    experts = config["num_local_experts"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("self_attn.q_norm", config["num_attention_heads"] * dim)
        layer.norm("self_attn.k_norm", config["num_key_value_heads"] * dim)
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("block_sparse_moe.gate", experts, hidden)
        layer.add("block_sparse_moe.e_score_correction_bias", (experts,), std=0.2)
        for expert in range(experts):
            layer.linear(f"block_sparse_moe.experts.{expert}.w1", width, hidden)
            layer.linear(f"block_sparse_moe.experts.{expert}.w2", hidden, width)
            layer.linear(f"block_sparse_moe.experts.{expert}.w3", width, hidden)
    t.norm("model.norm", hidden)
    t.head(config)
