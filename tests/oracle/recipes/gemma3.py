"""Gemma 3: two thetas, norms of the heads, windows 5:1, inside a wrapper or alone."""
from checkpoints import Tensors, Variant
from recipes.gemma2 import four_norms

TEXT = {"model_type": "gemma3_text", "hidden_size": 32, "intermediate_size": 64,
        "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 6,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "sliding_window": 8,
        "vocab_size": 260, "query_pre_attn_scalar": 24, "bos_token_id": 256, "eos_token_id": 257}
ALONE = TEXT | {"architectures": ["Gemma3ForCausalLM"], "hidden_activation": "gelu_pytorch_tanh"}
WRAPPER = {"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
           "boi_token_index": 255, "eoi_token_index": 255, "image_token_index": 262144,
           "mm_tokens_per_image": 4,
           "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 16,
                             "image_size": 16, "intermediate_size": 16, "num_attention_heads": 2,
                             "num_hidden_layers": 1, "patch_size": 8,
                             "vision_use_head": False}}
VISION = ["vision_tower.vision_model.embeddings.patch_embedding.bias",
          "multi_modal_projector.mm_soft_emb_norm.weight"]
VARIANTS = {
    # As the hub has it: the linear factor is for full layers only.
    "v4_wrapped": Variant(WRAPPER | {"torch_dtype": "bfloat16", "text_config": TEXT | {
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}}, "bfloat16",
        options={"prefix": "language_model.model."}),
    "v4_text": Variant(ALONE | {
        "rope_theta": 500000.0, "rope_local_base_freq": 5000.0, "sliding_window_pattern": 3,
        "torch_dtype": "float32", "final_logit_softcapping": 5.0},
        options={"prefix": "model."}),
    "v5_wrapped": Variant(WRAPPER | {"dtype": "float32", "text_config": TEXT | {
        "num_hidden_layers": 3, "attention_bias": True,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}},
        options={"prefix": "model.language_model."}),
    "v5_text": Variant(ALONE | {
        "num_hidden_layers": 3, "dtype": "float32",
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}},
        options={"prefix": "model."}),
}


def tensors(t: Tensors, config: dict, prefix: str) -> None:
    text = config.get("text_config", config)
    hidden, bias = text["hidden_size"], text.get("attention_bias", False)
    t.embedding(prefix + "embed_tokens", text["vocab_size"], hidden, std=0.1)
    for i in range(text["num_hidden_layers"]):
        layer = t.at(f"{prefix}layers.{i}.")
        four_norms(layer, hidden)
        layer.attention(text, bias, bias)
        layer.norm("self_attn.q_norm", text["head_dim"], around=0.0)
        layer.norm("self_attn.k_norm", text["head_dim"], around=0.0)
        layer.gated_mlp("mlp", text["intermediate_size"], hidden)
    t.norm(prefix + "norm", hidden, around=2.0)
    if "language_model" in prefix:
        for name in VISION:
            t.surplus(name if prefix.startswith("language") else "model." + name, (16,))
