"""Qwen2: biases on q, k and v that no key of config.json announces; windows from max_window_layers."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_tied": Variant(BASE | {
        "rope_theta": 1000000.0, "tie_word_embeddings": True, "use_sliding_window": False,
        "sliding_window": 16, "max_window_layers": 1, "torch_dtype": "bfloat16"}, "bfloat16"),
    # Layers 1 and 2 have the window.
    "v4_window": Variant(BASE | {
        "rope_theta": 1000000.0, "use_sliding_window": True, "sliding_window": 8,
        "max_window_layers": 1, "torch_dtype": "float32"}),
    # Quantised checkpoints, with biases.
    "v4_gptq_3bit": Variant(BASE | {
        "rope_theta": 1000000.0, "use_sliding_window": False, "torch_dtype": "float32",
        "num_hidden_layers": 2, "quantization_config": {
            "quant_method": "gptq", "bits": 3, "group_size": 32, "desc_act": False,
            "checkpoint_format": "gptq_v2"}},
        options={"form": {"encoding": "gptq", "bits": 3, "group": 32, "v2": True}}),
    "v4_packed": Variant(BASE | {
        "rope_theta": 1000000.0, "use_sliding_window": False, "torch_dtype": "float32",
        "num_hidden_layers": 2, "quantization_config": {
            "quant_method": "compressed-tensors", "format": "pack-quantized",
            "quantization_status": "compressed", "ignore": ["lm_head"], "kv_cache_scheme": None,
            "config_groups": {"group_0": {
                "targets": ["Linear"], "input_activations": None, "output_activations": None,
                "weights": {"num_bits": 4, "type": "int", "symmetric": False, "group_size": 16,
                            "strategy": "group", "dynamic": False}}}}},
        options={"form": {"encoding": "pack"}}),
    "v5_layer_types": Variant(BASE | {
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
        "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 3, "dtype": "float32",
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}),
    "v4_yarn": Variant(BASE | {
        "rope_theta": 10000.0, "use_sliding_window": False, "torch_dtype": "float32",
        "num_attention_heads": 2, "max_position_embeddings": 4096,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}}),
}


def tensors(t: Tensors, config: dict, form: dict | None = None) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        if form:
            layer = layer.quantized(**form)
        layer.norm("input_layernorm", hidden)
        layer.attention(config, qkv_bias=True)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
