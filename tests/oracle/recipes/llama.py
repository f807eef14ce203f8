"""Llama: biases by presence, head_dim of its own, every type of RoPE."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
V4 = BASE | {"rope_theta": 10000.0, "torch_dtype": "float32"}
V5 = BASE | {"dtype": "float32"}


def rope(**keys) -> dict:
    return V5 | {"rope_parameters": {"rope_theta": 10000.0} | keys}


LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}
KEPT = {"vocab_size": 264, "rms_norm_eps": 0.001}
SHORT, LONG = [1.0, 1.1, 1.3, 1.2], [1.5, 2.0, 4.0, 6.0]
LONGROPE = {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG}
VARIANTS = {
    "v4_llama3": Variant(V4 | {"rope_scaling": LLAMA3, "torch_dtype": "bfloat16"}, "bfloat16", files=2),
    # Tied, and biases on every linear layer.
    "v5_biases": Variant(rope(rope_type="default") | {
        "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}),
    "v5_head_dim": Variant(rope(rope_type="default") | {"head_dim": 16, "dtype": "float16"}, "float16"),
    # Keys that transformers 4 wrote before `rope_type`; all keys that have a default are absent.
    "v4_linear": Variant({key: value for key, value in V4.items() if key not in (
        "num_key_value_heads", "tie_word_embeddings", "rope_theta", "hidden_act")} | {
        "rope_scaling": {"type": "linear", "factor": 4.0}}),
    # Tied, and the file has another head all the same: transformers uses it.
    "v4_tied_head": Variant(V4 | {"tie_word_embeddings": True}, options={"head": True}),
    "v5_yarn": Variant(rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=64) | {
        "head_dim": 32}),
    # Both ends of the ramp are inside the head.
    "v4_yarn_ramp": Variant(V4 | {"head_dim": 32, "max_position_embeddings": 8192, "rope_scaling": {
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}}),
    "v5_yarn_mscale": Variant(rope(rope_type="yarn", factor=8.0, original_max_position_embeddings=512, beta_fast=16,
                                   beta_slow=2, mscale=1.0, mscale_all_dim=0.5, truncate=False)
                              | {"head_dim": 32}),
    "v4_dynamic": Variant(V4 | {"max_position_embeddings": 64,
                                "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}},
                          length_rule="step", original_length=64),
    # The prompt fits into the original length; the continuation does not.
    "v5_dynamic_crossing": Variant(rope(rope_type="dynamic", factor=2.0) | {"max_position_embeddings": 100},
                                   length_rule="step", original_length=100),
    # Quantised checkpoints. The groups of columns are in no order; two ranks divide them all the same.
    "v4_gptq": Variant(V4 | {"quantization_config": {
        "quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": True, "sym": False,
        "checkpoint_format": "gptq", "damp_percent": 0.1, "true_sequential": True}},
        options={"form": {"encoding": "gptq", "ordered": True}}),
    "v4_awq": Variant(V4 | {"quantization_config": {
        "quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": True,
        "modules_to_not_convert": ["lm_head"]}}, options={"form": {"encoding": "awq"}}),
    # Groups that --quantize int4 keeps, also on two ranks. The head is quantised too.
    "v4_gptq_kept": Variant(V4 | KEPT | {"hidden_size": 64, "intermediate_size": 128, "quantization_config": {
        "quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False, "lm_head": True,
        "checkpoint_format": "gptq_v2"}},
        options={"form": {"encoding": "gptq", "group": 32, "v2": True}, "whole": True}),
    "v4_awq_kept": Variant(V4 | KEPT | {"hidden_size": 128, "intermediate_size": 256, "quantization_config": {
        "quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True,
        "modules_to_not_convert": None}}, options={"form": {"encoding": "awq", "group": 128}, "whole": True}),
    "v4_nf4": Variant(V4 | {"quantization_config": {
        "quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False,
        "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True,
        "bnb_4bit_compute_dtype": "bfloat16", "llm_int8_skip_modules": ["lm_head"]}},
        options={"form": {"encoding": "nf4"}}),
    "v4_fbgemm_fp8": Variant(V4 | {"quantization_config": {
        "quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0,
        "modules_to_not_convert": ["lm_head"]}}, options={"form": {"encoding": "fp8_rows"}}),
    "v5_longrope": Variant(rope(**LONGROPE, original_max_position_embeddings=64),
                           length_rule="whole", original_length=64),
    "v5_longrope_crossing": Variant(rope(**LONGROPE, original_max_position_embeddings=100, factor=2.0),
                                    length_rule="whole", original_length=100),
}


def tensors(t: Tensors, config: dict, head: bool = False, form: dict | None = None,
            prefix: str = "model.", whole: bool = False) -> None:
    hidden, bias = config["hidden_size"], config.get("attention_bias", False)
    t.embedding(prefix + "embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"{prefix}layers.{i}.")
        if form:
            layer = layer.quantized(**form)
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden, config.get("mlp_bias", False))
    t.norm(prefix + "norm", hidden)
    if whole:
        t.quantized(**form).linear("lm_head", config["vocab_size"], hidden)
    else:
        t.head(config | {"tie_word_embeddings": False} if head else config)
