"""Qwen3-Next: as Qwen3.5 MoE, with projections that are grouped by key head."""
from checkpoints import Tensors, Variant
from recipes.qwen3_5 import LAYERS, hybrid, state_parameters
from recipes.qwen3_5_moe import MOE, shared_moe
from recipes.qwen3_moe import is_sparse

BASE = {key: value for key, value in MOE.items() if key not in (
    "attn_output_gate", "mamba_ssm_dtype")} | {
    "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next",
    "intermediate_size": 64, "decoder_sparse_step": 1, "mlp_only_layers": []}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "full_attention_interval": 4, "norm_topk_prob": True, "partial_rotary_factor": 0.25,
        "rope_theta": 100000, "rope_scaling": None, "torch_dtype": "bfloat16"}, "bfloat16",
        options={"fused": False}),
    # Three value heads share a key head; layer 1 is dense; weights as the softmax gives them.
    "v5_dense_layer": Variant(BASE | {
        "layer_types": LAYERS[2:], "num_hidden_layers": 2, "linear_num_value_heads": 6,
        "norm_topk_prob": False, "mlp_only_layers": [1], "dtype": "float32",
        "rope_parameters": {"rope_theta": 100000.0, "rope_type": "default",
                            "partial_rotary_factor": 0.25}},
        options={"fused": False}),
}


def grouped_delta_net(t: Tensors, config: dict) -> None:
    hidden, value_heads = config["hidden_size"], config["linear_num_value_heads"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = value_heads * config["linear_value_head_dim"]
    t.linear("linear_attn.in_proj_qkvz", 2 * keys + 2 * values, hidden)
    t.linear("linear_attn.in_proj_ba", 2 * value_heads, hidden)
    state_parameters(t, config, 2 * keys + values)
    t.linear("linear_attn.out_proj", hidden, values)


def tensors(t: Tensors, config: dict, fused: bool) -> None:
    index = iter(range(config["num_hidden_layers"]))

    def mlp(layer: Tensors, c: dict) -> None:
        if is_sparse(c, next(index)):
            shared_moe(layer, c, fused)
        else:
            layer.gated_mlp("mlp", c["intermediate_size"], c["hidden_size"])

    hybrid(t, config, "model.", mlp, grouped_delta_net)
