"""Gemma 4: full layers with heads of their own size, shared K/V, embeddings per layer, experts."""
import math

from checkpoints import Tensors, Variant
from recipes.gemma2 import four_norms

WINDOW, FULL = "sliding_attention", "full_attention"
TEXT = {"model_type": "gemma4_text", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 32,
        "intermediate_size": 48, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 6, "num_key_value_heads": 4, "head_dim": 8, "global_head_dim": 16,
        "rms_norm_eps": 0.01, "sliding_window": 8, "vocab_size": 260, "pad_token_id": 0,
        "bos_token_id": 256, "eos_token_id": 257, "attention_bias": False,
        "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 260,
        "num_kv_shared_layers": 0, "attention_k_eq_v": False, "use_double_wide_mlp": False,
        "enable_moe_block": False, "tie_word_embeddings": True,
        "rope_parameters": {
            FULL: {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
                   "rope_type": "proportional"},
            WINDOW: {"rope_theta": 10000.0, "rope_type": "default"}}}
MOE = {"enable_moe_block": True, "num_experts": 6, "top_k_experts": 3, "moe_intermediate_size": 24}
WRAPPER = {"architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4",
           "tie_word_embeddings": True, "dtype": "bfloat16", "image_token_id": 258880,
           "vision_config": {"model_type": "gemma4_vision", "hidden_size": 16,
                             "intermediate_size": 16, "num_hidden_layers": 1,
                             "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8,
                             "patch_size": 2, "position_embedding_size": 16},
           "audio_config": None}
INSIDE = {"prefix": "model.language_model."}
VARIANTS = {
    # E2B: the last two layers reuse the K/V of layers 2 and 3 and have MLPs of twice the width.
    "v5_shared": Variant(WRAPPER | {"text_config": TEXT | {
        "layer_types": [WINDOW, FULL] * 3, "hidden_size_per_layer_input": 8,
        "num_kv_shared_layers": 2, "use_double_wide_mlp": True, "num_key_value_heads": 2,
        "final_logit_softcapping": 6.0}}, "bfloat16", options=INSIDE),
    # 26B-A4B: values are keys on full layers, and experts beside the MLP.
    "v5_moe": Variant(WRAPPER | {"dtype": "float32", "text_config": TEXT | MOE | {
        "layer_types": [WINDOW, FULL, WINDOW, FULL], "num_hidden_layers": 4,
        "attention_k_eq_v": True, "num_global_key_value_heads": 2,
        "final_logit_softcapping": 30.0}}, options=INSIDE),
    # What save_pretrained writes: the sizes of full layers are in `per_layer_config`.
    "v5_text": Variant({key: value for key, value in TEXT.items() if key != "global_head_dim"} | MOE
                       | {"architectures": ["Gemma4ForCausalLM"], "dtype": "float32",
                          "layer_types": [WINDOW, WINDOW, FULL, WINDOW, WINDOW, FULL],
                          "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 3,
                          "per_layer_config": {"2": {"head_dim": 16, "num_key_value_heads": 2},
                                               "5": {"head_dim": 16, "num_key_value_heads": 2}},
                          "attention_k_eq_v": True, "final_logit_softcapping": None},
                       options={"prefix": "model."}),
    # Five window layers and a full one by default; no RoPE keys.
    "v5_defaults": Variant(WRAPPER | {"dtype": "float32", "text_config": {
        key: value for key, value in TEXT.items() if key not in (
            "rope_parameters", "hidden_activation", "num_kv_shared_layers", "attention_k_eq_v",
            "use_double_wide_mlp", "enable_moe_block", "tie_word_embeddings")} | {
        "num_global_key_value_heads": 2}}, options=INSIDE),
}


def layer_types(text: dict) -> list:
    return text.get("layer_types") or [
        FULL if (i + 1) % 6 == 0 else WINDOW for i in range(text["num_hidden_layers"])]


def attention(t: Tensors, text: dict, index: int, kind: str, shared: bool) -> None:
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    own = text.get("per_layer_config", {}).get(str(index), {})
    head_dim, kv_heads = text["head_dim"], text["num_key_value_heads"]
    values_are_keys = text.get("attention_k_eq_v", False) and kind == FULL
    if kind == FULL:
        head_dim = own.get("head_dim") or text["global_head_dim"]
        if values_are_keys:
            kv_heads = own.get("num_key_value_heads") or text["num_global_key_value_heads"]
    t.linear("self_attn.q_proj", heads * head_dim, hidden)
    t.linear("self_attn.o_proj", hidden, heads * head_dim)
    t.norm("self_attn.q_norm", head_dim, around=0.5)
    rows = kv_heads * head_dim
    if shared:  # The hub stores them, and no model reads them.
        t.surplus("self_attn.k_proj.weight", (rows, hidden))
        t.surplus("self_attn.v_proj.weight", (rows, hidden))
        t.surplus("self_attn.k_norm.weight", (head_dim,))
        return
    t.linear("self_attn.k_proj", rows, hidden)
    t.norm("self_attn.k_norm", head_dim)
    if not values_are_keys:
        t.linear("self_attn.v_proj", rows, hidden)


def experts(t: Tensors, text: dict) -> None:
    hidden, count = text["hidden_size"], text["num_experts"]
    t.add("router.proj.weight", (count, hidden), std=3.0)
    t.add("router.scale", (hidden,), mean=1.0, std=0.2)
    t.add("router.per_expert_scale", (count,), mean=1.0, std=0.2)
    t.experts("experts", count, text["moe_intermediate_size"], hidden, fused=True)
    for name in ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2",
                 "pre_feedforward_layernorm_2"):
        t.norm(name, hidden)


def per_layer_ends(t: Tensors, text: dict, prefix: str) -> None:
    hidden, width = text["hidden_size"], text["hidden_size_per_layer_input"]
    columns = text["num_hidden_layers"] * width
    t.embedding(prefix + "embed_tokens_per_layer", text["vocab_size_per_layer_input"], columns)
    t.linear(prefix + "per_layer_model_projection", columns, hidden)
    t.norm(prefix + "per_layer_projection_norm", width)


def tensors(t: Tensors, config: dict, prefix: str) -> None:
    text = config.get("text_config", config)
    hidden, width = text["hidden_size"], text["hidden_size_per_layer_input"]
    first_shared = text["num_hidden_layers"] - text.get("num_kv_shared_layers", 0)
    t.embedding(prefix + "embed_tokens", text["vocab_size"], hidden, std=0.1)
    if width:
        per_layer_ends(t, text, prefix)
    for i, kind in enumerate(layer_types(text)):
        layer, shared = t.at(f"{prefix}layers.{i}."), i >= first_shared
        four_norms(layer, hidden, around=1.0)
        attention(layer, text, i, kind, shared)
        wide = 2 if shared and text.get("use_double_wide_mlp", False) else 1
        layer.gated_mlp("mlp", wide * text["intermediate_size"], hidden)
        layer.add("layer_scalar", (1,), mean=0.8, std=0.1)
        if width:
            layer.linear("per_layer_input_gate", width, hidden)
            layer.linear("per_layer_projection", hidden, width)
            layer.norm("post_per_layer_input_norm", hidden)
        if text.get("enable_moe_block", False):
            experts(layer, text)
    t.norm(prefix + "norm", hidden, around=3.0)
    if "language_model" in prefix:
        t.surplus("model.vision_tower.patch_embedder.input_proj.weight")
        t.surplus("model.embed_vision.embedding_projection.weight")
