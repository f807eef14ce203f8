"""Command R7B: Command R with windows on three layers of four, which alone have RoPE."""
from checkpoints import Tensors, Variant
from recipes.cohere import BASE as COHERE, tensors as cohere_tensors

BASE = COHERE | {"architectures": ["Cohere2ForCausalLM"], "model_type": "cohere2", "num_hidden_layers": 4,
                 "sliding_window": 8}
VARIANTS = {
    "v4_pattern": Variant(BASE | {"rope_theta": 50000.0, "sliding_window_pattern": 2, "torch_dtype": "bfloat16"},
                          "bfloat16"),
    "v5_layer_types": Variant(BASE | {
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        "dtype": "float32", "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}),
}


def tensors(t: Tensors, config: dict) -> None:
    cohere_tensors(t, config)
