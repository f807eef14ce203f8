"""LLaVA 1.5: Llama inside a wrapper with a vision tower."""
from checkpoints import Tensors, Variant
from recipes.llama import V4, V5
from recipes.mistral3 import INSIDE, tensors as wrapped_tensors

WRAPPER = {"architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "image_token_index": 255,
           "projector_hidden_act": "gelu", "vision_feature_layer": -1, "vision_feature_select_strategy": "default",
           "vision_config": {"model_type": "clip_vision_model", "hidden_size": 16, "image_size": 16,
                             "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1,
                             "patch_size": 8, "projection_dim": 16, "vocab_size": 260}}
CLASS = "LlavaForConditionalGeneration"
VARIANTS = {
    # As the hub has it: no type of the text, and names of transformers 4.
    "v4_hub": Variant(WRAPPER | {"torch_dtype": "float16", "text_config": {
        key: value for key, value in (V4 | INSIDE).items()
        if key not in ("architectures", "model_type", "torch_dtype")}},
        "float16", options={"inner": "language_model.model.", "outer": "language_model."}, oracle_class=CLASS),
    "v5_tied": Variant(WRAPPER | {"dtype": "float32", "tie_word_embeddings": True, "text_config": {
        key: value for key, value in (V5 | INSIDE).items() if key not in ("architectures", "dtype")} | {
        "tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}},
        options={"inner": "model.language_model."}, oracle_class=CLASS),
}


def tensors(t: Tensors, config: dict, inner: str, outer: str = "") -> None:
    wrapped_tensors(t, config, inner, outer)
