"""Ministral 3: Llama with yarn, whose queries grow with the position."""
from checkpoints import Tensors, Variant
from recipes.llama import tensors as llama_tensors

BASE = {"architectures": ["Ministral3ForCausalLM"], "model_type": "ministral3", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 3, "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01}
YARN = {"rope_type": "yarn", "type": "yarn", "rope_theta": 1000000.0, "factor": 8.0, "beta_fast": 32.0,
        "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
VARIANTS = {
    # Queries grow every 32 tokens.
    "v5_hub": Variant(BASE | {
        "sliding_window": None, "tie_word_embeddings": False, "dtype": "bfloat16",
        "rope_parameters": YARN | {"original_max_position_embeddings": 32, "llama_4_scaling_beta": 0.1}},
        "bfloat16"),
    # The class has the yarn; no text reaches its length.
    "v5_defaults": Variant(BASE | {
        "max_position_embeddings": 262144, "head_dim": 64, "tie_word_embeddings": True, "dtype": "float32"}),
    "v5_window": Variant(BASE | {
        "sliding_window": 8, "tie_word_embeddings": False, "dtype": "float32",
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "original_max_position_embeddings": 20,
                            "llama_4_scaling_beta": 0.5}}),
}


def tensors(t: Tensors, config: dict) -> None:
    llama_tensors(t, config)
