"""Qwen3: a norm of each query and key head; head_dim of its own."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "head_dim": 16,
        "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "tie_word_embeddings": False, "attention_bias": False}
VARIANTS = {
    "v4_tied": Variant(BASE | {
        "rope_theta": 1000000.0, "rope_scaling": None, "tie_word_embeddings": True,
        "use_sliding_window": False, "sliding_window": None, "max_window_layers": 3,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
        "attention_bias": True, "use_sliding_window": False, "dtype": "float32"}),
    "v5_window": Variant(BASE | {
        "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
        "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1, "dtype": "float32",
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}),
    "v4_yarn": Variant(BASE | {
        "rope_theta": 10000.0, "torch_dtype": "float32", "max_position_embeddings": 4096,
        "rope_scaling": {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}}),
    # As the hub has it, the scales are bfloat16.
    "v4_fp8": Variant(BASE | {
        "rope_theta": 1000000.0, "torch_dtype": "bfloat16", "num_hidden_layers": 2,
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3",
                                "activation_scheme": "dynamic", "weight_block_size": [16, 16]}},
        "bfloat16", options={"fp8": True}),
}


def tensors(t: Tensors, config: dict, fp8: bool = False) -> None:
    hidden, bias = config["hidden_size"], config["attention_bias"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer = layer.fp8(16, "BF16") if fp8 else layer
        layer.norm("input_layernorm", hidden)
        layer.attention(config, bias, bias)
        layer.norm("self_attn.q_norm", config["head_dim"])
        layer.norm("self_attn.k_norm", config["head_dim"])
        layer.norm("post_attention_layernorm", hidden)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden)
    t.head(config)
