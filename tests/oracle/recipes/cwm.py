"""Code World Model: Llama with windows on three layers of four, and the llama3 RoPE of its class."""
from checkpoints import Tensors, Variant
from recipes.llama import LLAMA3
from recipes.llama import tensors as llama_tensors

BASE = {"architectures": ["CwmForCausalLM"], "model_type": "cwm", "hidden_act": "silu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 5,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "sliding_window": 8,
        "tie_word_embeddings": False}
VARIANTS = {
    "v4_hub": Variant(BASE | {"layer_types": ["full_attention", "sliding_attention", "sliding_attention",
                                              "sliding_attention", "full_attention"],
                              "rope_scaling": LLAMA3, "rope_theta": 1000000.0, "torch_dtype": "bfloat16"},
                      "bfloat16"),
    # The class has the windows and the RoPE.
    "v5_defaults": Variant(BASE | {"max_position_embeddings": 131072, "head_dim": 64, "dtype": "float32"}),
    "v5_tied": Variant(BASE | {"mlp_bias": True, "tie_word_embeddings": True, "dtype": "float32",
                               "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    llama_tensors(t, config)
