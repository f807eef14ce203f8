"""Ministral: Llama with windows on the layers that layer_types names."""
from checkpoints import Tensors, Variant
from recipes.llama import tensors as llama_tensors

BASE = {"architectures": ["MinistralForCausalLM"], "model_type": "ministral", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 3, "num_key_value_heads": 2, "rms_norm_eps": 0.01, "sliding_window": 8,
        "tie_word_embeddings": False}
VARIANTS = {
    "v4_window": Variant(BASE | {"head_dim": 8, "rope_theta": 100000000.0, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_layer_types": Variant(BASE | {
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"], "head_dim": 16,
        "dtype": "float32", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    llama_tensors(t, config)
