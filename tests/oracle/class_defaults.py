"""What the config classes of HF transformers say where config.json lacks keys: the sizes of each model type.

Each row has a config.json and the sizes that the class gives it. Some say almost nothing, as google/gemma-3-4b-it does.
"""

import json
import sys
from pathlib import Path

from transformers import CONFIG_MAPPING

from checkpoints import recipes

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "goldens" / "class_defaults.json"
LATENT = ("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "minicpm3", "youtu")  # their heads are of other sizes
ENCODERS = ("bert", "modernbert", "roberta", "xlm-roberta")
# Keys for which a class has no default.
NEEDED = {
    "dots1": {"n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6},
    "glm4_moe": {"head_dim": 128},
}
# Keys without which a type has no layer of one kind, or sizes that do not fit each other.
MORE = {
    "deepseek_v2": {"first_k_dense_replace": 1},
    "gpt_neo": {"attention_layers": ["local"] * 7, "attention_types": [[["local"], 7]]},
    "qwen2_moe": {"mlp_only_layers": [0]},
    "qwen3_moe": {"mlp_only_layers": [0]},
    "qwen3_next": {"mlp_only_layers": [0]},
}
WRAPPERS = (
    # google/gemma-3-4b-it
    {
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
            "sliding_window": 1024,
        },
    },
    {"model_type": "gemma4", "text_config": {"model_type": "gemma4_text"}},
    {"model_type": "llama4", "text_config": {"model_type": "llama4_text"}},
    {"model_type": "llava", "text_config": {"model_type": "llama"}},
    {"model_type": "mistral3", "text_config": {"model_type": "ministral3"}},
    {"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text"}},
    {"model_type": "qwen3_5_moe", "text_config": {"model_type": "qwen3_5_moe_text"}},
)


def windows(config) -> list[int]:
    """By layer, how many positions a query sees; 0 is all. Empty: all layers see all."""
    if config.model_type == "gpt_neo":
        return [config.window_size if kind == "local" else 0 for kind in config.attention_layers]
    kinds = getattr(config, "layer_types", None)
    window = getattr(config, "sliding_window", None) or 0
    if config.model_type == "modernbert":
        window = config.local_attention // 2 + 1
    if kinds is None:
        kinds = ["sliding_attention"] * config.num_hidden_layers
    found = [window if kind == "sliding_attention" else 0 for kind in kinds]
    return found if any(found) else []


def theta(config) -> float | None:
    """Of the layers without a window; of Gemma 4, of those with one."""
    parameters = getattr(config, "rope_parameters", None) or {}
    kind = "sliding_attention" if config.model_type == "gemma4_text" else "full_attention"
    return parameters.get(kind, parameters).get("rope_theta")


def widths(config) -> tuple[int, int]:
    """Of an MLP and of an expert; 0 where no layer has one."""
    keys = ("ffn_dim", "ffn_hidden_size", "intermediate_size", "n_inner")
    if config.model_type == "lfm2":  # two thirds, rounded up
        return -(-(2 * config.intermediate_size // 3) // config.block_multiple_of) * config.block_multiple_of, 0
    if config.model_type == "dbrx":
        return 0, config.ffn_config.ffn_hidden_size
    if config.model_type == "gpt_neo":
        return config.intermediate_size or 4 * config.hidden_size, 0
    mlp = next((getattr(config, key) for key in keys if getattr(config, key, None)), 4 * config.hidden_size)
    expert = getattr(config, "moe_intermediate_size", None) or 0
    if not expert and (getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None)):
        return 0, mlp  # `intermediate_size` is that of an expert
    dense = "dense" in (getattr(config, "mlp_layer_types", None) or []) or any(getattr(config, key, None) for key in (
        "first_k_dense_replace", "mlp_only_layers", "moe_layer_start_index", "num_dense_layers"))
    return (0 if expert and not dense else mlp), expert


def sizes(config) -> dict:
    config.allow_global_per_layer_attribute_access = True  # of gemma4: what most layers have
    heads = config.num_attention_heads
    mlp, expert = widths(config)
    found = {
        "hidden": config.hidden_size,
        "layers": config.num_hidden_layers,
        "heads": heads,
        "kv_heads": 1 if config.model_type == "falcon" else getattr(config, "num_key_value_heads", None) or heads,
        "head_dim": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "intermediate": mlp,
        "expert_intermediate": expert,
        "vocabulary": config.vocab_size,
        "positions": getattr(config, "max_position_embeddings", None),
        "windows": windows(config),
        "theta": theta(config),
    }
    if config.model_type == "mimo_v2_flash":  # those of layers with a window
        found["kv_heads"] *= 2
    if config.model_type in ("roberta", "xlm-roberta"):
        found["positions"] -= config.pad_token_id + 1
    if config.model_type in LATENT:
        del found["kv_heads"], found["head_dim"]
    return {key: value for key, value in found.items() if value is not None}


def row(given: dict) -> str:
    text = given.get("text_config", given)
    config = CONFIG_MAPPING[text["model_type"]](**{key: text[key] for key in text if key != "model_type"})
    return json.dumps({"config": given, "sizes": sizes(config)})


def types() -> list[str]:
    """Of the text models that have a recipe, and of encoders."""
    configs = (recipe.config.get("text_config", recipe.config) for recipe in recipes().values())
    return sorted({config["model_type"] for config in configs if "model_type" in config}) + list(ENCODERS)


def configs():
    for name in types():
        bare = {"model_type": name} | NEEDED.get(name, {})
        yield bare
        kind = CONFIG_MAPPING[name]
        names = [kind.attribute_map.get(key, key) for key in ("num_hidden_layers", "num_attention_heads")]
        yield bare | dict(zip(names, (7, 2 * kind(**NEEDED.get(name, {})).num_attention_heads))) | MORE.get(name, {})
    yield from WRAPPERS


def main() -> int:
    golden = "[\n" + ",\n".join(row(given) for given in configs()) + "\n]\n"
    if "--check" in sys.argv:
        return 0 if GOLDEN.read_text() == golden else f"{GOLDEN} differs"
    GOLDEN.write_text(golden)
    print(f"oracle: class defaults: {golden.count('config')} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
