"""Qwen3.5 with experts: a softmax router, renormalised, and a shared expert with its own gate."""
from checkpoints import Tensors, Variant
from recipes.qwen3_5 import INSIDE, LAYERS, ROPE, TEXT, WRAPPER, hybrid

MOE = {key: value for key, value in TEXT.items() if key != "intermediate_size"} | {
    "model_type": "qwen3_5_moe_text", "num_experts": 6, "num_experts_per_tok": 3,
    "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40}
BASE = WRAPPER | {"architectures": ["Qwen3_5MoeForConditionalGeneration"],
                  "model_type": "qwen3_5_moe",
                  "vision_config": {"model_type": "qwen3_5_moe", "depth": 1, "hidden_size": 16}}
VARIANTS = {
    "v5_fused": Variant(BASE | {"text_config": MOE | {
        "layer_types": LAYERS, "rope_parameters": ROPE, "dtype": "bfloat16"}}, "bfloat16",
        options=INSIDE | {"fused": True}),
    "v5_single": Variant(BASE | {"text_config": MOE | {
        "full_attention_interval": 2, "num_hidden_layers": 2, "rope_parameters": ROPE,
        "dtype": "float32"}}, options=INSIDE | {"fused": False}),
    "v5_text": Variant(MOE | {
        "architectures": ["Qwen3_5MoeForCausalLM"], "layer_types": LAYERS, "rope_parameters": ROPE,
        "dtype": "float32"}, options={"prefix": "model.", "fused": True}),
}


def shared_moe(t: Tensors, config: dict, fused: bool) -> None:
    hidden = config["hidden_size"]
    t.linear("mlp.gate", config["num_experts"], hidden, gain=3.0)
    t.experts("mlp.experts", config["num_experts"], config["moe_intermediate_size"], hidden, fused)
    t.gated_mlp("mlp.shared_expert", config["shared_expert_intermediate_size"], hidden)
    t.linear("mlp.shared_expert_gate", 1, hidden)


def tensors(t: Tensors, config: dict, prefix: str, fused: bool) -> None:
    text = config.get("text_config", config)
    hybrid(t, text, prefix, lambda layer, c: shared_moe(layer, c, fused))
