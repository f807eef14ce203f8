"""Tiny random checkpoints, at least one per model family, with every key and tensor name of the family.

Weights come from NumPy's MT19937, whose stream never changes, so the files are the same everywhere.
FAMILIES says what each folder tests.
"""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModelForCausalLM

BOS, END, USER, ASSISTANT = 256, 257, 258, 259
SPECIALS = ["<|bos|>", "<|end|>", "<|user|>", "<|assistant|>"]
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")

COMMON = {
    "bos_token_id": BOS, "eos_token_id": END, "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 64,
    "max_position_embeddings": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-6, "vocab_size": 260, "use_cache": True,
}
FAMILIES = {
    # Keys as transformers 4 wrote them; llama3 scaling whose three branches all apply; two files and an index.
    "llama": {
        "seed": 21, "dtype": torch.bfloat16, "dtype_key": "torch_dtype", "shards": 2,
        "config": {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": False,
            "mlp_bias": False, "tie_word_embeddings": False, "rope_theta": 10000.0,
            "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
                             "high_freq_factor": 4.0, "original_max_position_embeddings": 64}}},
    # Sliding window shorter than the prompts; keys as transformers 5 writes them; float16 on disk.
    "mistral": {
        "seed": 23, "dtype": torch.float16, "dtype_key": "dtype", "shards": 1,
        "config": {
            "architectures": ["MistralForCausalLM"], "model_type": "mistral", "head_dim": 8,
            "sliding_window": 8, "tie_word_embeddings": False,
            "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}},
    # Biases on q, k and v; tied embeddings (no lm_head tensor); v4 keys; float32; a list of end tokens.
    "qwen2": {
        "seed": 21, "dtype": torch.float32, "dtype_key": "torch_dtype", "shards": 1,
        "config": {
            "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "rope_theta": 1000000.0,
            "tie_word_embeddings": True, "use_sliding_window": False, "sliding_window": 16,
            "max_window_layers": 2, "eos_token_id": [END, BOS]}},
    # Norms on q and k; heads x head_dim is twice the hidden size; v5 keys.
    "qwen3": {
        "seed": 27, "dtype": torch.bfloat16, "dtype_key": "dtype", "shards": 1,
        "config": {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 16,
            "attention_bias": False, "tie_word_embeddings": False, "use_sliding_window": False,
            "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"}}},
    # LayerNorm and biases; half of each head is rotated; attention beside the MLP; exact GELU; v4 keys.
    "gpt_neox": {
        "seed": 21, "dtype": torch.float16, "dtype_key": "torch_dtype", "shards": 1,
        "config": {
            "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_act": "gelu",
            "layer_norm_eps": 1e-5, "rotary_pct": 0.5, "rotary_emb_base": 10000, "attention_bias": True,
            "use_parallel_residual": True, "tie_word_embeddings": False, "num_key_value_heads": None,
            "rms_norm_eps": None}},
    # The same family with attention before the MLP, GELU by tanh, a quarter of each head rotated; v5 keys.
    "gpt_neox_sequential": {
        "seed": 21, "dtype": torch.float32, "dtype_key": "dtype", "shards": 1,
        "config": {
            "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_act": "gelu_new",
            "layer_norm_eps": 1e-5, "attention_bias": True, "use_parallel_residual": False,
            "tie_word_embeddings": False, "num_key_value_heads": None, "rms_norm_eps": None,
            "rope_parameters": {"rope_theta": 5000.0, "rope_type": "default", "partial_rotary_factor": 0.25}}},
}


def byte_tokenizer() -> Tokenizer:
    """One token per byte and no merges: ids 0..255 in the order of the byte-level alphabet."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIALS)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|bos|> $A", pair="<|bos|> $A $B", special_tokens=[("<|bos|>", BOS)])
    return tokenizer


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def random_weights(shapes: dict[str, torch.Size], seed: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Large enough for logits that differ: matrices N(0, 1/sqrt(columns)) x 1.5, norms around 1,
    embeddings small enough for tied ones to give logits of the same size."""
    source = np.random.RandomState(seed)
    weights = {}
    for name in sorted(shapes):
        values = source.standard_normal(tuple(shapes[name])).astype(np.float32)
        if name.endswith("bias"):
            values = 0.3 * values
        elif "norm" in name:
            values = 1.0 + 0.2 * values
        elif "embed_tokens" in name or "embed_in" in name:
            values = 0.3 * values
        else:
            values = values * (1.5 / np.sqrt(shapes[name][-1]))
        weights[name] = torch.from_numpy(values.astype(np.float32)).to(dtype).contiguous()
    return weights


def parameter_shapes(folder: Path, tied: bool) -> dict[str, torch.Size]:
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    if tied:
        shapes.pop("lm_head.weight", None)
    # The class has a new name for this tensor, and reads files with the old one.
    if model.config.model_type == "gpt_neox":
        shapes["embed_out.weight"] = shapes.pop("lm_head.weight")
    return shapes


def save_weights(folder: Path, weights: dict[str, torch.Tensor], shards: int) -> None:
    if shards == 1:
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = sorted(weights)
    weight_map = {}
    for index in range(shards):
        file = f"model-{index + 1:05d}-of-{shards:05d}.safetensors"
        part = names[index * len(names) // shards:(index + 1) * len(names) // shards]
        save_file({name: weights[name] for name in part}, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    total = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    write_json(folder / "model.safetensors.index.json",
               {"metadata": {"total_size": total}, "weight_map": weight_map})


def make_model(folder: Path, family: dict) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    config = COMMON | family["config"] | {family["dtype_key"]: str(family["dtype"]).removeprefix("torch.")}
    config = {key: value for key, value in config.items() if value is not None}
    write_json(folder / "config.json", dict(sorted(config.items())))
    write_json(folder / "generation_config.json",
               {"bos_token_id": BOS, "do_sample": False, "eos_token_id": config["eos_token_id"]})
    byte_tokenizer().save(str(folder / "tokenizer.json"), pretty=False)
    write_json(folder / "tokenizer_config.json", {
        "bos_token": "<|bos|>", "chat_template": CHAT_TEMPLATE, "clean_up_tokenization_spaces": False,
        "eos_token": "<|end|>", "model_max_length": 256, "tokenizer_class": "PreTrainedTokenizerFast"})
    shapes = parameter_shapes(folder, config["tie_word_embeddings"])
    save_weights(folder, random_weights(shapes, family["seed"], family["dtype"]), family["shards"])


def make_all(root: Path) -> None:
    for name, family in FAMILIES.items():
        make_model(root / name, family)
