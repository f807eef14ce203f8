"""BioGPT: a scaled embedding, learned positions that begin at row 2, biases everywhere."""
from checkpoints import Tensors, Variant

BASE = {"architectures": ["BioGptForCausalLM"], "model_type": "biogpt", "hidden_act": "gelu", "hidden_size": 32,
        "intermediate_size": 64, "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2}
VARIANTS = {
    # The epsilon of the norms is not that of the file.
    "v4_hub": Variant(BASE | {"layer_norm_eps": 1e-12, "scale_embedding": True, "torch_dtype": "float16"}, "float16"),
    "v5_unscaled": Variant(BASE | {"scale_embedding": False, "tie_word_embeddings": False, "hidden_act": "gelu_new",
                                   "dtype": "float32"}),
}


def tensors(t: Tensors, config: dict) -> None:
    hidden, width = config["hidden_size"], config["intermediate_size"]
    t.embedding("biogpt.embed_tokens", config["vocab_size"], hidden)
    t.embedding("biogpt.embed_positions", config["max_position_embeddings"] + 2, hidden)
    for i in range(config["num_hidden_layers"]):
        layer = t.at(f"biogpt.layers.{i}.")
        layer.norm("self_attn_layer_norm", hidden, bias=True)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            layer.linear("self_attn." + name, hidden, hidden, True)
        layer.norm("final_layer_norm", hidden, bias=True)
        layer.linear("fc1", width, hidden, True)
        layer.linear("fc2", hidden, width, True)
    t.norm("biogpt.layer_norm", hidden, bias=True)
    t.head({"tie_word_embeddings": True} | config, "output_projection")
