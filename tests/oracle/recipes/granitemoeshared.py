"""Granite MoE with a shared expert."""
from checkpoints import Tensors, Variant
from recipes.granitemoe import BASE as GRANITE, MULTIPLIERS, tensors as granite_tensors

BASE = GRANITE | {"architectures": ["GraniteMoeSharedForCausalLM"], "model_type": "granitemoeshared"}
VARIANTS = {
    "v4_shared": Variant(BASE | MULTIPLIERS | {
        "shared_intermediate_size": 40, "tie_word_embeddings": True, "rope_theta": 10000.0, "attention_bias": False,
        "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_none": Variant(BASE | {"shared_intermediate_size": 0, "tie_word_embeddings": False, "attention_bias": True,
                              "dtype": "float32", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    granite_tensors(t, config)
