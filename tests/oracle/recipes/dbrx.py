"""DBRX: LayerNorm without biases, clipped q, k and v, the experts of a layer in three matrices."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["DbrxForCausalLM"], "model_type": "dbrx", "d_model": 32, "n_heads": 4, "n_layers": 2,
        "max_seq_len": 256, "tie_word_embeddings": False}
FFN = {"ffn_hidden_size": 24, "moe_num_experts": 6, "moe_top_k": 3, "ffn_act_fn": {"name": "silu"}}
VARIANTS = {
    # transformers 5 looks for theta elsewhere.
    "v4_hub": Variant(BASE | {
        "attn_config": {"clip_qkv": 2, "kv_n_heads": 2, "rope_theta": 500000},
        "ffn_config": FFN | {"moe_jitter_eps": 0, "moe_loss_weight": 0.05, "moe_normalize_expert_weights": 1.0},
        "torch_dtype": "bfloat16"}, "bfloat16", oracle={"rope_theta": 500000}),
    # The class of transformers fails without a bound.
    "v5_plain": Variant(BASE | {
        "attn_config": {"kv_n_heads": 4, "rope_theta": 10000.0},
        "ffn_config": FFN | {"moe_normalize_expert_weights": None, "ffn_act_fn": {"name": "gelu"}},
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "dtype": "float32"},
        oracle={"attn_config": {"kv_n_heads": 4, "rope_theta": 10000.0, "clip_qkv": 1e6}}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, ffn = config["d_model"], config["ffn_config"]
    rows = hidden + 2 * config["attn_config"]["kv_n_heads"] * hidden // config["n_heads"]
    experts, width = ffn["moe_num_experts"], ffn["ffn_hidden_size"]
    t.embedding("transformer.wte", config["vocab_size"], hidden)
    for i in range(config["n_layers"]):
        layer = t.at(f"transformer.blocks.{i}.")
        layer.norm("norm_attn_norm.norm_1", hidden)
        layer.linear("norm_attn_norm.attn.Wqkv", rows, hidden)
        layer.linear("norm_attn_norm.attn.out_proj", hidden, hidden)
        layer.norm("norm_attn_norm.norm_2", hidden)
        layer.linear("ffn.router.layer", experts, hidden, gain=3.0)
        layer.add("ffn.experts.mlp.w1", (experts * width, hidden), std=1.5 / hidden ** 0.5)
        layer.add("ffn.experts.mlp.v1", (experts * width, hidden), std=1.5 / hidden ** 0.5)
        layer.add("ffn.experts.mlp.w2", (experts * width, hidden), std=1.5 / width ** 0.5)
    t.norm("transformer.norm_f", hidden)
    t.head({"hidden_size": hidden} | config)
