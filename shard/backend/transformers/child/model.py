"""The model: what its folder says, its weights, and one call of its forward."""

import inspect
import json
import os
import pathlib
import struct

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, DynamicCache, GenerationConfig

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# Where a config says how many positions the model knows, in this order.
_LENGTH_KEYS = ("max_position_embeddings", "n_positions", "seq_length", "max_seq_len", "max_sequence_length")
_UNKNOWN_LENGTH = 32768  # of models without positions, such as Mamba
# RoPE of these types depends on the length of a text, so a cached key would change later.
_LENGTH_RULES = ("dynamic", "longrope")


class Refused(Exception):
    """The model cannot be served; the text is one line for the user."""


def one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:400]}"


class Folder:
    """What config.json and the headers say, before the weights are read."""

    def __init__(self, path: str, dtype: str, trust: bool):
        self.path, self.trust = path, trust
        self.config = self._read_config()
        self.text = self.config.get_text_config(decoder=True)
        if getattr(self.config, "is_encoder_decoder", False):
            raise Refused(f"config.json: model_type: {self.config.model_type}: models with an encoder and a decoder "
                          "are not served")
        self.stored = getattr(self.config, "dtype", None) or getattr(self.text, "dtype", None)
        if isinstance(self.stored, str):
            self.stored = getattr(torch, self.stored, None)
        self.dtype = self._choose(dtype)

    def _read_config(self):
        raw = json.loads((pathlib.Path(self.path) / "config.json").read_text())
        kind = raw.get("model_type")
        known = kind in transformers.CONFIG_MAPPING
        if not self.trust and not known and "auto_map" in raw:
            raise Refused(f"config.json: model_type: {kind}: the model has code of its own (auto_map), which runs "
                          "only with --trust-remote-code")
        if not known and "auto_map" not in raw:
            raise Refused(f"config.json: model_type: {kind}: transformers {transformers.__version__} does not know it "
                          "and the folder has no code of its own (auto_map)")
        try:
            return AutoConfig.from_pretrained(self.path, trust_remote_code=self.trust, local_files_only=True)
        except Exception as error:
            raise Refused(f"config.json cannot be read by transformers: {one_line(error)}") from error

    def _choose(self, dtype: str) -> torch.dtype:
        if dtype != "auto":
            return DTYPES[dtype]
        stored = self.stored or torch.float32
        # CPUs convert float16 one by one; float32 holds its values exactly.
        return stored if stored in (torch.float32, torch.bfloat16) else torch.float32

    def describe(self) -> dict:
        parameters = self._parameters()
        return {
            "model_type": self.config.model_type,
            "vocabulary": self.text.vocab_size,
            "max_position": self._max_position(),
            "eos_token_ids": self._eos(),
            "bos_token_id": self._token("bos_token_id"),
            "dtype": str(self.dtype).removeprefix("torch."),
            "stored_dtype": str(self.stored).removeprefix("torch.") if self.stored else "",
            "layers": int(getattr(self.text, "num_hidden_layers", 1)),
            "caches": self._caches(),
            "parameters": parameters,
            "weight_bytes": parameters * self.dtype.itemsize,
            "versions": f"transformers {transformers.__version__}, torch {torch.__version__}",
        }

    def _max_position(self) -> int:
        length = next((int(value) for key in _LENGTH_KEYS if (value := getattr(self.text, key, None))),
                      _UNKNOWN_LENGTH)
        rope = getattr(self.text, "rope_parameters", None) or {}
        if rope.get("rope_type") in _LENGTH_RULES:
            original = rope.get("original_max_position_embeddings") or getattr(
                self.text, "original_max_position_embeddings", None) or length
            length = min(length, int(original))
        return length

    def _token(self, key: str) -> int:
        value = getattr(self._generation(), key, None)
        value = getattr(self.text, key, None) if value is None else value
        return value if isinstance(value, int) else -1

    def _eos(self) -> list[int]:
        value = getattr(self._generation(), "eos_token_id", None)
        value = getattr(self.text, "eos_token_id", None) if value is None else value
        values = value if isinstance(value, list) else [value]
        return [token for token in values if isinstance(token, int) and 0 <= token < self.text.vocab_size]

    def _generation(self):
        if not (pathlib.Path(self.path) / "generation_config.json").exists():
            return None
        return GenerationConfig.from_pretrained(self.path, local_files_only=True)

    def _caches(self) -> list[list[int]]:
        """An estimate: heads, dimensions of a key and of a value, for each layer that keeps some."""
        config = self.text
        heads = int(getattr(config, "num_attention_heads", None) or getattr(config, "n_head", None) or 1)
        kv_heads = int(getattr(config, "num_key_value_heads", None) or heads)
        hidden = int(getattr(config, "hidden_size", None) or 64)
        dim = int(getattr(config, "head_dim", None) or max(1, hidden // heads))
        value = dim
        if getattr(config, "kv_lora_rank", None) and getattr(config, "qk_nope_head_dim", None):
            # Latent attention: transformers caches the keys and values of all heads.
            kv_heads = heads
            dim = config.qk_nope_head_dim + config.qk_rope_head_dim
            value = config.v_head_dim
        layers = int(getattr(config, "num_hidden_layers", 1))
        kinds = getattr(config, "layer_types", None) or ["full_attention"] * layers
        kept = [kind for kind in kinds if "attention" in kind and kind != "linear_attention" or "hybrid" in kind]
        return [[kv_heads, dim, value]] * max(1, len(kept))

    def _parameters(self) -> int:
        """Of the .safetensors files, by their headers; else by the size of the files."""
        total = 0
        for file in sorted(pathlib.Path(self.path).glob("*.safetensors")):
            with open(file, "rb") as stream:
                header = json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))
            for name, tensor in header.items():
                if name != "__metadata__":
                    total += _product(tensor["shape"])
        if total > 0:
            return total
        size = sum(file.stat().st_size for file in pathlib.Path(self.path).glob("*.bin"))
        return size // (self.stored or torch.float32).itemsize


class Model:
    def __init__(self, folder: Folder):
        self.folder = folder
        self.vocabulary = folder.text.vocab_size
        self.module = self._load()
        names = inspect.signature(self.module.forward).parameters
        self._accepts = set(names)
        self.cache_name = next((name for name in ("past_key_values", "cache_params") if name in names), None)

    def _load(self):
        options = {"config": self.folder.config, "dtype": self.folder.dtype, "local_files_only": True,
                   "trust_remote_code": self.folder.trust, "output_loading_info": True}
        try:
            try:
                module, info = AutoModelForCausalLM.from_pretrained(self.folder.path, **options)
            except ValueError as error:
                if "Unrecognized configuration class" not in str(error):
                    raise
                module, info = AutoModelForImageTextToText.from_pretrained(self.folder.path, **options)
        except Exception as error:
            raise Refused(f"transformers cannot load the model: {one_line(error)}") from error
        # transformers fills what is missing with random numbers.
        for what in ("missing_keys", "mismatched_keys"):
            names = sorted(str(name) for name in info.get(what, ()))
            if names:
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                raise Refused(f"the checkpoint does not fit the model: {what.replace('_', ' ')}: {names[0]}{more}")
        return module.eval()

    def bytes(self) -> int:
        tensors = {id(tensor): tensor for tensor in self.module.parameters()}
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())

    def new_cache(self):
        if self.cache_name is None:
            return None
        return DynamicCache(config=self.folder.config)

    def run(self, tokens, cache=None, lengths=None, keep=0):
        """Logits of the last `keep` rows (0: of all) as float32 [rows, keep, vocabulary], and the cache.

        `tokens` is [rows, new tokens]. `lengths` are the tokens of each row in the cache before; shorter
        rows have padding at the left of it.
        """
        lengths = lengths or [0] * tokens.shape[0]
        longest, new = max(lengths), tokens.shape[1]
        before = torch.tensor(lengths).unsqueeze(1)
        columns = torch.arange(longest + new).unsqueeze(0)
        offered = {
            "input_ids": tokens,
            "attention_mask": (columns >= longest - before).long(),
            "position_ids": before + torch.arange(new).unsqueeze(0),
            "cache_position": torch.arange(longest, longest + new),
            "use_cache": cache is not None,
            "logits_to_keep": keep,
            "return_dict": True,
        }
        if self.cache_name == "cache_params":
            del offered["attention_mask"]  # a state has no padding, and the mask would stretch a step
        if cache is not None:
            offered[self.cache_name] = cache
        output = self.module(**{name: value for name, value in offered.items() if name in self._accepts})
        logits = output.logits[..., :self.vocabulary]
        if keep > 0:
            logits = logits[:, -keep:]
        return logits.float(), getattr(output, self.cache_name, None) if cache is not None else None


def _product(shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def resident_bytes() -> int:
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
