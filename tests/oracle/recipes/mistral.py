"""Mistral: Llama with one window for all layers, or none."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01}
VARIANTS = {
    "v5_window": Variant(BASE | {
        "head_dim": 8, "sliding_window": 8, "tie_word_embeddings": False, "dtype": "float16",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, "float16"),
    # Nemo: heads x head_dim is not the hidden size, and the window is null.
    "v4_nemo": Variant(BASE | {
        "head_dim": 16, "sliding_window": None, "rope_theta": 1000000.0, "torch_dtype": "bfloat16"},
        "bfloat16", files=2, stray_file="consolidated.safetensors"),
    # Quantised checkpoints.
    "v4_fp8_static": Variant(BASE | {
        "rope_theta": 10000.0, "sliding_window": None, "num_hidden_layers": 2,
        "torch_dtype": "float32", "quantization_config": {
            "quant_method": "fp8", "activation_scheme": "static", "weight_block_size": None,
            "modules_to_not_convert": ["lm_head"]}},
        options={"form": {"encoding": "fp8_whole"}}),
    "v4_int8": Variant(BASE | {
        "rope_theta": 10000.0, "sliding_window": None, "num_hidden_layers": 2,
        "torch_dtype": "float32", "quantization_config": {
            "load_in_8bit": True, "llm_int8_threshold": 6.0, "llm_int8_skip_modules": None}},
        options={"form": {"encoding": "int8"}}),
    "v4_defaults": Variant({key: value for key, value in BASE.items() if key not in (
        "hidden_act", "rms_norm_eps")} | {"sliding_window": 12, "torch_dtype": "float32"}),
}


def tensors(t: Tensors, config: dict, form: dict | None = None) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        if form:
            layer = layer.quantized(**form)
        layer.norm("input_layernorm", hidden)
        layer.attention(config)
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
