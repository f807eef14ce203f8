"""Helium: Llama with interleaved RoPE."""
from checkpoints import Tensors, Variant
from recipes.llama import tensors as llama_tensors

BASE = {"architectures": ["HeliumForCausalLM"], "model_type": "helium", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {"attention_bias": False, "mlp_bias": False, "rope_theta": 100000.0,
                             "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_two_heads": Variant(BASE | {"num_attention_heads": 2, "head_dim": 16, "num_key_value_heads": 1,
                                   "dtype": "float32",
                                  "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    llama_tensors(t, config)
