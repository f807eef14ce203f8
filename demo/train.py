"""Trains Penstock's demo model from nothing: text, tokenizer, weights, model folder.

    pip install torch transformers tokenizers safetensors
    python demo/train.py --output demo/model        # seeded; about twenty minutes on one idle core

Everything is written again every few minutes, so an interrupted run leaves a model that can be served.
"""

import argparse
import itertools
import json
import math
import random
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM

import generate_text

PAD, BOS, END, EOT, SYSTEM, USER, ASSISTANT = range(7)
SPECIALS = ["<|pad|>", "<|bos|>", "<|end|>", "<|eot|>", "<|system|>", "<|user|>", "<|assistant|>"]
# A turn is <|role|>content<|eot|>; a text ends with <|end|>. Nothing else: no spaces, no newlines.
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('role must be system, user or assistant') }}"
    "{% endif %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] | trim + '<|eot|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")


@dataclass
class Settings:
    output: Path
    steps: int = 1200
    seed: int = 20
    vocabulary: int = 2048
    tokenizer_documents: int = 20_000
    peak_rate: float = 4e-3
    threads: int = 1
    save_seconds: float = 240.0


def train_tokenizer(settings: Settings) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocabulary, special_tokens=SPECIALS, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    stream = itertools.islice(generate_text.documents(settings.seed), settings.tokenizer_documents)
    tokenizer.train_from_iterator((plain_text(item) for item in stream), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|bos|> $A", pair="<|bos|> $A $B", special_tokens=[("<|bos|>", BOS)])
    return tokenizer


def plain_text(item: str | list[dict]) -> str:
    return item if isinstance(item, str) else "\n".join(message["content"] for message in item)


def encode_document(tokenizer: Tokenizer, item: str | list[dict]) -> list[int]:
    """The ids of a text or conversation, exactly as the server makes them."""
    def ids_of(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    if isinstance(item, str):
        return [BOS, *ids_of(item), END]
    roles = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
    ids = [BOS]
    for message in item:
        ids += [roles[message["role"]], *ids_of(message["content"]), EOT]
    return ids


class Batches:
    """Rows of whole documents, each row beginning with one; the last document of a row is cut."""

    def __init__(self, tokenizer: Tokenizer, seed: int):
        self._tokenizer = tokenizer
        self._stream = generate_text.documents(seed)

    def _row(self, length: int) -> list[int]:
        row: list[int] = []
        while len(row) < length + 1:
            row += encode_document(self._tokenizer, next(self._stream))
        return row[:length + 1]

    def next(self, step: int) -> torch.Tensor:
        """Mostly short rows; every twelfth batch is long, so that late positions are trained too."""
        rows, length = (2, 2048) if step % 12 == 11 else (10, 384)
        return torch.tensor([self._row(length) for _ in range(rows)])


def build_model(settings: Settings, vocabulary: int) -> LlamaForCausalLM:
    torch.manual_seed(settings.seed)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=128, intermediate_size=384, num_hidden_layers=6,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=2048,
        rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=BOS, eos_token_id=[END, EOT],
        pad_token_id=PAD, use_cache=False)
    model = LlamaForCausalLM(config)
    for name, parameter in model.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            parameter.data /= math.sqrt(2 * config.num_hidden_layers)
    return model


def learning_rate(step: int, settings: Settings) -> float:
    """A short warm-up, then a cosine down to a fiftieth of the peak."""
    warmup = 60
    if step < warmup:
        return settings.peak_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, settings.steps - warmup)
    return settings.peak_rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))


def loss_of(model: LlamaForCausalLM, batch: torch.Tensor) -> torch.Tensor:
    logits = model(input_ids=batch[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


def save(model: LlamaForCausalLM, tokenizer: Tokenizer, settings: Settings) -> None:
    """Writes config, generation config, weights (bfloat16) and tokenizer."""
    settings.output.mkdir(parents=True, exist_ok=True)
    copy = LlamaForCausalLM(model.config).to(torch.bfloat16)
    copy.load_state_dict(model.state_dict())
    copy.config.use_cache = True
    copy.save_pretrained(settings.output)
    (settings.output / "model.safetensors").chmod(0o644)
    model.config.use_cache = False
    write_json(settings.output / "generation_config.json", {
        "bos_token_id": BOS, "do_sample": False, "eos_token_id": [END, EOT], "pad_token_id": PAD})
    tokenizer.save(str(settings.output / "tokenizer.json"))
    write_json(settings.output / "tokenizer_config.json", {
        "bos_token": "<|bos|>", "chat_template": CHAT_TEMPLATE, "clean_up_tokenization_spaces": False,
        "eos_token": "<|end|>", "model_max_length": copy.config.max_position_embeddings,
        "pad_token": "<|pad|>", "tokenizer_class": "PreTrainedTokenizerFast"})


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@torch.no_grad()
def sample(model: LlamaForCausalLM, tokenizer: Tokenizer, start: list[int], limit: int = 120) -> str:
    ids = torch.tensor([start])
    made = model.generate(ids, max_new_tokens=limit, do_sample=False, use_cache=True,
                          eos_token_id=[END, EOT], pad_token_id=PAD)
    return tokenizer.decode(made[0].tolist(), skip_special_tokens=False)


def show_samples(model: LlamaForCausalLM, tokenizer: Tokenizer) -> None:
    model.eval()
    for text in ["Once upon a time", "One day, a little girl named"]:
        print("   ", sample(model, tokenizer, tokenizer.encode(text).ids), flush=True)
    for text in ["Hello!", "Hi, how are you?", "What can you do?"]:
        turn = encode_document(tokenizer, [{"role": "user", "content": text}]) + [ASSISTANT]
        print("   ", sample(model, tokenizer, turn), flush=True)
    model.train()


def make_optimizer(model: LlamaForCausalLM, settings: Settings) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.peak_rate, betas=(0.9, 0.98))


def train(settings: Settings) -> None:
    torch.set_num_threads(settings.threads)
    random.seed(settings.seed)
    tokenizer = train_tokenizer(settings)
    model = build_model(settings, tokenizer.get_vocab_size())
    print(f"{model.num_parameters():,} parameters, {tokenizer.get_vocab_size()} tokens", flush=True)
    batches = Batches(tokenizer, settings.seed + 1)
    optimizer = make_optimizer(model, settings)
    started = saved = time.monotonic()
    average = None
    for step in range(settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings)
        loss = loss_of(model, batches.next(step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        if step % 20 == 0:
            print(f"step {step}/{settings.steps} loss {average:.3f} {time.monotonic() - started:.0f} s",
                  flush=True)
        if time.monotonic() - saved > settings.save_seconds:
            save(model, tokenizer, settings)
            show_samples(model, tokenizer)
            saved = time.monotonic()
    save(model, tokenizer, settings)
    show_samples(model, tokenizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "model")
    parser.add_argument("--steps", type=int, default=Settings.steps)
    parser.add_argument("--seed", type=int, default=Settings.seed)
    parser.add_argument("--threads", type=int, default=Settings.threads)
    arguments = parser.parse_args()
    train(Settings(**vars(arguments)))


if __name__ == "__main__":
    main()
