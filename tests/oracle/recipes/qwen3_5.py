"""Qwen3.5: gated delta net and full attention 3:1, inside a wrapper with a vision tower."""
from checkpoints import Tensors, Variant

ROPE = {"rope_type": "default", "rope_theta": 100000.0, "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1], "mrope_interleaved": True}
TEXT = {"model_type": "qwen3_5_text", "hidden_act": "silu", "hidden_size": 48,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4,
        "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 32, "rms_norm_eps": 0.01,
        "vocab_size": 260, "bos_token_id": 256, "eos_token_id": 257, "attention_bias": False,
        "attn_output_gate": True, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 8,
        "linear_value_head_dim": 12, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
        "mamba_ssm_dtype": "float32", "tie_word_embeddings": False}
LAYERS = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
WRAPPER = {"architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
           "image_token_id": 248056, "tie_word_embeddings": False,
           "vision_config": {"model_type": "qwen3_5", "depth": 1, "hidden_size": 16}}
INSIDE = {"prefix": "model.language_model."}
VARIANTS = {
    "v5_wrapped": Variant(WRAPPER | {"text_config": TEXT | {
        "layer_types": LAYERS, "rope_parameters": ROPE, "dtype": "bfloat16"}}, "bfloat16",
        files=2, options=INSIDE),
    # The layer types come from the interval; two of three value heads share a key head.
    "v5_interval_tied": Variant(WRAPPER | {"tie_word_embeddings": True, "text_config": TEXT | {
        "full_attention_interval": 2, "rope_parameters": ROPE, "dtype": "float32",
        "num_hidden_layers": 5, "linear_num_value_heads": 6, "linear_value_head_dim": 8,
        "linear_conv_kernel_dim": 3, "tie_word_embeddings": True}}, options=INSIDE),
    # What save_pretrained writes for the text model alone.
    "v5_text": Variant(TEXT | {
        "architectures": ["Qwen3_5ForCausalLM"], "layer_types": LAYERS, "rope_parameters": ROPE,
        "attention_bias": True, "dtype": "float32"}, options={"prefix": "model."}),
}


def gated_delta_net(t: Tensors, config: dict) -> None:
    hidden, value_heads = config["hidden_size"], config["linear_num_value_heads"]
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = value_heads * config["linear_value_head_dim"]
    t.linear("linear_attn.in_proj_qkv", 2 * keys + values, hidden)
    t.linear("linear_attn.in_proj_z", values, hidden)
    t.linear("linear_attn.in_proj_b", value_heads, hidden)
    t.linear("linear_attn.in_proj_a", value_heads, hidden)
    state_parameters(t, config, 2 * keys + values)
    t.linear("linear_attn.out_proj", hidden, values)


def state_parameters(t: Tensors, config: dict, channels: int) -> None:
    value_heads = config["linear_num_value_heads"]
    t.add("linear_attn.conv1d.weight", (channels, 1, config["linear_conv_kernel_dim"]), std=0.6)
    t.add("linear_attn.dt_bias", (value_heads,), std=1.0)
    t.add("linear_attn.A_log", (value_heads,), std=1.0)
    t.norm("linear_attn.norm", config["linear_value_head_dim"])


def gated_attention(t: Tensors, config: dict) -> None:
    """Full attention: q_proj holds query and gate of each head."""
    hidden, heads, head_dim = config["hidden_size"], config["num_attention_heads"], config["head_dim"]
    bias = config["attention_bias"]
    t.linear("self_attn.q_proj", 2 * heads * head_dim, hidden, bias)
    t.linear("self_attn.k_proj", config["num_key_value_heads"] * head_dim, hidden, bias)
    t.linear("self_attn.v_proj", config["num_key_value_heads"] * head_dim, hidden, bias)
    t.linear("self_attn.o_proj", hidden, heads * head_dim, bias)
    t.norm("self_attn.q_norm", head_dim, around=0.0)
    t.norm("self_attn.k_norm", head_dim, around=0.0)


def layer_types(config: dict) -> list:
    interval = config.get("full_attention_interval", 4)
    return config.get("layer_types") or [
        "linear_attention" if (i + 1) % interval else "full_attention"
        for i in range(config["num_hidden_layers"])]


def hybrid(t: Tensors, config: dict, prefix: str, mlp, linear_attention=gated_delta_net) -> None:
    hidden = config["hidden_size"]
    t.embedding(prefix + "embed_tokens", config["vocab_size"], hidden)
    for i, kind in enumerate(layer_types(config)):
        layer = t.at(f"{prefix}layers.{i}.")
        layer.norm("input_layernorm", hidden, around=0.0)
        (linear_attention if kind == "linear_attention" else gated_attention)(layer, config)
        layer.norm("post_attention_layernorm", hidden, around=0.0)
        mlp(layer, config)
    t.norm(prefix + "norm", hidden, around=0.0)
    t.head(config)
    t.surplus("mtp.fc.weight")
    t.surplus("mtp.layers.0.input_layernorm.weight")
    if "language_model" in prefix:
        t.surplus("model.visual.blocks.0.attn.qkv.weight")
        t.surplus("model.visual.merger.norm.bias")


def tensors(t: Tensors, config: dict, prefix: str) -> None:
    text = config.get("text_config", config)
    hybrid(t, text, prefix, lambda layer, c: layer.gated_mlp(
        "mlp", c["intermediate_size"], c["hidden_size"]))
