"""GLM-4-0414: GLM with norms after the branches, too."""
from checkpoints import Tensors, Variant
from recipes.glm import BASE as GLM, tensors as glm_tensors

BASE = GLM | {"architectures": ["Glm4ForCausalLM"], "model_type": "glm4"}
VARIANTS = {
    "v4_hub": Variant(BASE | {"attention_bias": True, "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
                              "torch_dtype": "bfloat16"}, "bfloat16"),
    "v5_no_biases": Variant(BASE | {"attention_bias": False, "dtype": "float32", "rope_parameters": {
        "rope_theta": 10000.0, "rope_type": "default", "partial_rotary_factor": 1.0}}),
}


def tensors(t: Tensors, config: dict) -> None:
    glm_tensors(t, config, branch_norms=True)
