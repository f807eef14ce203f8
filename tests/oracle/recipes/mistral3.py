"""Mistral Small 3.1 and Ministral 3: another type inside a wrapper with a vision tower."""
from checkpoints import Tensors, Variant
from recipes.llama import tensors as llama_tensors
from recipes.ministral3 import BASE as MINISTRAL3, YARN
from recipes.mistral import BASE as MISTRAL

INSIDE = {"vocab_size": 260, "bos_token_id": 256, "eos_token_id": 257}
SMALL = {key: value for key, value in MISTRAL.items() if key != "architectures"} | INSIDE
MINI = {key: value for key, value in MINISTRAL3.items() if key != "architectures"} | INSIDE
WRAPPER = {"architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3",
           "image_token_index": 255, "multimodal_projector_bias": False, "projector_hidden_act": "gelu",
           "spatial_merge_size": 2, "vision_feature_layer": -1,
           "vision_config": {"model_type": "pixtral", "hidden_size": 16, "image_size": 16, "intermediate_size": 16,
                             "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 8, "head_dim": 8}}
CLASS = "Mistral3ForConditionalGeneration"
VARIANTS = {
    # As the hub has Mistral Small 3.1: even the head has a prefix.
    "v4_small": Variant(WRAPPER | {"torch_dtype": "bfloat16", "text_config": SMALL | {
        "head_dim": 16, "rope_theta": 1000000.0, "sliding_window": None, "tie_word_embeddings": False}}, "bfloat16",
        options={"inner": "language_model.model.", "outer": "language_model."}, oracle_class=CLASS),
    "v5_ministral": Variant(WRAPPER | {"dtype": "float32", "tie_word_embeddings": False, "text_config": MINI | {
        "sliding_window": None, "tie_word_embeddings": False,
        "rope_parameters": YARN | {"original_max_position_embeddings": 32, "llama_4_scaling_beta": 0.1}}},
        options={"inner": "model.language_model."}, oracle_class=CLASS),
}


def tensors(t: Tensors, config: dict, inner: str, outer: str = "") -> None:
    text = config["text_config"]
    llama_tensors(t, text | {"tie_word_embeddings": True}, prefix=inner)
    t.head(text, outer + "lm_head")
    before = "model." if inner.startswith("model.") else ""
    t.surplus(before + "vision_tower.ln_pre.weight", (16,))
    t.surplus(before + "multi_modal_projector.norm.weight", (16,))
