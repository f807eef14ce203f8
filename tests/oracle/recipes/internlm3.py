"""InternLM 3: Llama with a head_dim of its own and biases by another name."""
from checkpoints import Tensors, Variant
from recipes.llama import tensors as llama_tensors

BASE = {"architectures": ["InternLM3ForCausalLM"], "model_type": "internlm3", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {"bias": False, "qkv_bias": False, "rope_theta": 50000000,
                              "rope_scaling": None, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {"attention_bias": True, "mlp_bias": True, "dtype": "float32",
                                 "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    llama_tensors(t, config)
