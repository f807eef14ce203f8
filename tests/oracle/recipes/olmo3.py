"""OLMo 3: OLMo 2 with windows on three layers of four, and yarn on the full layers alone."""
from checkpoints import Tensors, Variant
from recipes.olmo2 import BASE as OLMO2, tensors as olmo2_tensors

BASE = OLMO2 | {"architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "num_hidden_layers": 4,
                "sliding_window": 8}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 32.0,
        "beta_slow": 1.0, "attention_factor": 1.2}
VARIANTS = {
    "v4_yarn": Variant(BASE | {"rope_theta": 500000.0, "rope_scaling": YARN, "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_by_layer": Variant(BASE | {
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        "dtype": "float32", "rope_parameters": {
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
            "full_attention": YARN | {"rope_theta": 500000.0}}}),
}


def tensors(t: Tensors, config: dict) -> None:
    olmo2_tensors(t, config)
