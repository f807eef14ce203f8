"""VaultGemma: Gemma 2 without the norms after the branches."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["VaultGemmaForCausalLM"], "model_type": "vaultgemma", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 4,
        "num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 0.01, "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": 24, "sliding_window": 8}
VARIANTS = {
    "v4_hub": Variant(BASE | {
        "attn_logit_softcapping": None, "final_logit_softcapping": None, "rope_theta": 10000.0,
        "layer_types": ["sliding_attention", "full_attention"] * 2, "torch_dtype": "float32"}),
    "v5_softcaps": Variant(BASE | {
        "attn_logit_softcapping": 3.0, "final_logit_softcapping": 6.0, "dtype": "bfloat16",
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, "bfloat16"),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden = config["hidden_size"]
    t.embedding("model.embed_tokens", config["vocab_size"], hidden, std=0.1)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"model.layers.{i}.")
        layer.norm("input_layernorm", hidden, around=0.0)
        layer.norm("pre_feedforward_layernorm", hidden, around=0.0)
        layer.attention(config)
        layer.gated_mlp("mlp", config["intermediate_size"], hidden)
    t.norm("model.norm", hidden, around=0.0)
    t.head({"tie_word_embeddings": True} | config)
