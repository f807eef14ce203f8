"""gpt-oss: sinks, windows on even layers, yarn without truncation, clamped experts with biases."""
import math

from checkpoints import Tensors, Variant

BASE = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 32, "max_position_embeddings": 256, "head_dim": 16,
        "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "attention_bias": True,
        "num_local_experts": 6, "sliding_window": 8, "swiglu_limit": 7.0}
YARN = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 32}
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]
VARIANTS = {
    "v4_mxfp4": Variant(BASE | {
        "layer_types": LAYERS, "num_experts_per_tok": 3, "experts_per_token": 3,
        "rope_theta": 150000.0, "rope_scaling": YARN | {"original_max_position_embeddings": 1024},
        "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
        "quantization_config": {
            "quant_method": "mxfp4", "modules_to_not_convert": [
                "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens",
                "lm_head"]}},
        "bfloat16", options={"encoding": "mxfp4"}),
    # The clamps apply: the limit is small.
    "v5_bf16": Variant(BASE | {
        "num_experts_per_tok": 2, "rope_parameters": YARN | {"rope_theta": 150000.0},
        "swiglu_limit": 1.5, "dtype": "bfloat16"}, "bfloat16"),
    "v5_wide": Variant(BASE | {
        "layer_types": ["full_attention", "full_attention", "sliding_attention"],
        "hidden_size": 64, "intermediate_size": 96, "num_experts_per_tok": 4,
        "rope_parameters": {"rope_theta": 150000.0, "rope_type": "default"}, "dtype": "float32"}),
}


def experts(t: Tensors, config: dict, encoding: str) -> None:
    """Rows of gate and up alternate. The type on disk decides the order of the dimensions."""
    count, hidden, width = (config[key] for key in (
        "num_local_experts", "hidden_size", "intermediate_size"))
    if encoding == "mxfp4":
        t.add("mlp.experts.gate_up_proj", (count, 2 * width, hidden), std=1.5 / math.sqrt(hidden),
              encoding=encoding)
        t.add("mlp.experts.down_proj", (count, hidden, width), std=1.5 / math.sqrt(width),
              encoding=encoding)
    else:
        t.add("mlp.experts.gate_up_proj", (count, hidden, 2 * width), std=1.5 / math.sqrt(hidden))
        t.add("mlp.experts.down_proj", (count, width, hidden), std=1.5 / math.sqrt(width))
    t.add("mlp.experts.gate_up_proj_bias", (count, 2 * width), std=0.3)
    t.add("mlp.experts.down_proj_bias", (count, hidden), std=0.3)


def tensors(t: Tensors, config: dict, encoding: str = "") -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden)
        layer.attention(config, True, True)
        layer.add("self_attn.sinks", (config["num_attention_heads"],), mean=1.0, std=1.0)
        layer.norm("post_attention_layernorm", hidden)
        layer.linear("mlp.router", config["num_local_experts"], hidden, bias=True, gain=3.0)
        experts(layer, config, encoding)
    t.norm("model.norm", hidden)
    t.head(config)
