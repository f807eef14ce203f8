"""The self check at load: which ways of computing give the same logits as the whole text at once.

A way that fails is not used: texts are then computed without a cache, in one piece, or one row at a
time. docs/how-to/transformers.md states the bounds.
"""

import dataclasses

import torch

import caches
from model import Model, one_line

# Largest difference of two logits of a row, as a share of the row's largest logit; and the share of
# rows that must keep it. In short types an expert may be chosen differently for single rows.
_BOUNDS = {torch.float32: (1e-3, 1.0), torch.bfloat16: (5e-2, 0.9), torch.float16: (5e-2, 0.9)}
_STEPS = 6
_LENGTHS = (48, 17, 5)


@dataclasses.dataclass
class Ways:
    cached: bool = True   # steps continue from a cache
    chunked: bool = True  # so do the chunks of a prompt
    batched: bool = True  # rows of different lengths are computed together
    notes: list = dataclasses.field(default_factory=list)

    def name(self) -> str:
        if not self.cached:
            return "no-cache"
        parts = {"whole-prompts": self.chunked, "single-rows": self.batched}
        return "+".join(part for part, holds in parts.items() if not holds)


def check(model: Model) -> Ways:
    """Raises where not even the whole text can be computed."""
    return _Check(model).run()


class _Check:
    def __init__(self, model: Model):
        self.model = model
        self.bound, self.share = _BOUNDS[model.folder.dtype]
        longest = max(4, min(_longest(model), model.folder.describe()["max_position"] - 1))
        self.steps = min(_STEPS, longest // 2)
        lengths = sorted({min(length, longest) for length in (longest, *_LENGTHS[1:])}, reverse=True)
        self.texts = [_text(length, i, model.vocabulary) for i, length in enumerate(lengths)]
        self.whole = [model.run(text.unsqueeze(0))[0][0] for text in self.texts]
        if not all(torch.isfinite(logits).all() for logits in self.whole):
            raise ValueError("the logits of a short text are not finite numbers")

    def run(self) -> Ways:
        ways = Ways()
        ways.cached = self._holds("cached steps", self._cached, ways)
        ways.chunked = ways.cached and self._holds("chunks of a prompt", self._chunked, ways)
        ways.batched = ways.cached and self._holds("rows of different lengths", self._batched, ways)
        return ways

    def _holds(self, what, compute, ways) -> bool:
        try:
            pairs = compute()
        except Exception as error:
            ways.notes.append(f"{what} cannot be computed ({one_line(error)})")
            return False
        differences = torch.cat([_difference(mine, whole) for mine, whole in pairs])
        right = (differences <= self.bound).float().mean().item()
        if right >= self.share:
            return True
        ways.notes.append(f"{what} differ from the whole text by up to {differences.max().item():.2g} of the largest "
                          f"logit, the bound is {self.bound:g}")
        return False

    def _cached(self):
        return [self._steps_of(i) for i in range(len(self.texts))]

    def _steps_of(self, index):
        text, whole = self.texts[index], self.whole[index]
        start = max(1, len(text) - self.steps)
        logits, cache = self.model.run(text[:start].unsqueeze(0), self.model.new_cache(), keep=1)
        if cache is None:
            raise ValueError("the model returns no cache")
        rows = [logits[0]]
        for at in range(start, len(text)):
            logits, cache = self.model.run(text[at:at + 1].unsqueeze(0), cache, [at], keep=1)
            rows.append(logits[0])
        return torch.cat(rows), whole[start - 1:]

    def _chunked(self):
        text, whole = self.texts[0], self.whole[0]
        cache, first = self.model.new_cache(), 0
        rows = []
        for count in _chunks(len(text)):
            logits, cache = self.model.run(text[first:first + count].unsqueeze(0), cache, [first])
            rows.append(logits[0])
            first += count
        return [(torch.cat(rows), whole)]

    def _batched(self):
        rows = [i for i, text in enumerate(self.texts) if len(text) > self.steps]
        starts = [len(self.texts[i]) - self.steps for i in rows]
        single = [self.model.run(self.texts[i][:start].unsqueeze(0), self.model.new_cache(), keep=1)[1]
                  for i, start in zip(rows, starts)]
        if not all(caches.can_join(cache) for cache in single):
            raise ValueError("its cache has a form that cannot be padded")
        if len(rows) == 1:  # a model of few positions: the same row twice
            rows, starts, single = rows * 2, starts * 2, single * 2
        joined, out = caches.join(single), []
        for step in range(self.steps):
            if step == self.steps // 2:  # as when a row joins or leaves
                lengths = [start + step for start in starts]
                single = [caches.split(joined, i, length) for i, length in enumerate(lengths)]
                joined = caches.join(single)
            tokens = torch.stack([self.texts[i][start + step:start + step + 1] for i, start in zip(rows, starts)])
            logits, joined = self.model.run(tokens, joined, [start + step for start in starts], keep=1)
            out += [(logits[row], self.whole[i][start + step:start + step + 1])
                    for row, (i, start) in enumerate(zip(rows, starts))]
        return out


def _longest(model: Model) -> int:
    """Beyond a short window, so that the check sees its end."""
    windows = [getattr(model.folder.text, name, None) for name in ("sliding_window", "attention_chunk_size")]
    return max([_LENGTHS[0], *(2 * window + 8 for window in windows if isinstance(window, int) and window <= 64)])


def _chunks(length: int) -> list[int]:
    chunks = []
    while length > 0:
        chunks.append(min(7 if len(chunks) % 2 else 11, length))
        length -= chunks[-1]
    return chunks


def _text(length: int, seed: int, vocabulary: int) -> torch.Tensor:
    ids = min(vocabulary, 1000)
    return torch.tensor([(7 + 37 * i + 101 * seed + i * i) % ids for i in range(length)])


def _difference(mine: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    difference = (mine - whole).abs().amax(-1) / whole.abs().amax(-1).clamp_min(1e-6)
    return torch.nan_to_num(difference, nan=float("inf"))
