"""Llama 4 with a vision tower, beside which even the head has a prefix."""
from checkpoints import Tensors, Variant
from recipes.llama4_text import BASE as TEXT, tensors as text_tensors

TEXT = {key: value for key, value in TEXT.items() if key != "architectures"} | {
    "vocab_size": 260, "bos_token_id": 256, "eos_token_id": 257}
WRAPPER = {"architectures": ["Llama4ForConditionalGeneration"], "model_type": "llama4", "boi_token_index": 255,
           "eoi_token_index": 255, "image_token_index": 254, "vision_config": {
               "model_type": "llama4_vision_model", "hidden_size": 16, "image_size": 16, "intermediate_size": 64,
               "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 8, "vision_output_dim": 16,
               "projector_input_dim": 16, "projector_output_dim": 16}}
VARIANTS = {
    "v5_wrapped": Variant(WRAPPER | {"dtype": "float32", "tie_word_embeddings": False, "text_config": TEXT | {
        "interleave_moe_layer_step": 2, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}},
        oracle_class="Llama4ForConditionalGeneration"),
}


def tensors(t: Tensors, config: dict) -> None:
    text = config["text_config"]
    sparse = [i for i in range(text["num_hidden_layers"]) if i % 2 == 1]
    text_tensors(t, text | {"moe_layers": sparse}, "language_model.")
    t.surplus("vision_model.class_embedding", (16,))
    t.surplus("multi_modal_projector.linear_1.weight", (32, 16))
