"""Granite: multipliers of embedding, residual branches and attention; logits are divided."""
from checkpoints import Tensors, Variant
from recipes.llama import tensors as llama_tensors

BASE = {"architectures": ["GraniteForCausalLM"], "model_type": "granite", "hidden_act": "silu",
        "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 256,
        "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
        "rms_norm_eps": 0.01, "embedding_multiplier": 2.0, "logits_scaling": 1.25,
        "residual_multiplier": 0.8, "attention_multiplier": 0.5}
VARIANTS = {
    "v4_tied": Variant(BASE | {
        "tie_word_embeddings": True, "rope_theta": 10000.0, "attention_bias": False,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_biases": Variant(BASE | {
        "tie_word_embeddings": False, "attention_bias": True, "mlp_bias": True, "dtype": "float32",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
    # The multipliers are 1 by default, also that of attention.
    "v5_defaults": Variant({key: value for key, value in BASE.items() if "multiplier" not in key
                            and key != "logits_scaling"} | {
        "dtype": "float32", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    llama_tensors(t, config)
