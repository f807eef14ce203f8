"""Computes steps: the chunks of prompts one after the other, then the decode rows in batches.

A slot is a sequence of the shard. Its text and its cache stay here until the shard releases it or
begins another sequence on it.
"""

import dataclasses

import torch

import caches
from check import Ways
from model import Model

# A batch may have this many padded positions and as many again as its rows have real ones.
_SPARE_PADDING = 4096


@dataclasses.dataclass
class Segment:
    slot: int
    tokens: list
    context: int
    wanted: list  # indexes into tokens, ascending, whose logits are wanted
    at: int       # of the first of them among the logits of the step


@dataclasses.dataclass
class Batch:
    slots: tuple   # None: the slot was released
    lengths: list  # tokens of each row in the cache
    cache: object


class Rows:
    def __init__(self, model: Model, ways: Ways):
        self.model, self.ways = model, ways
        self.reset(timing=False)
        self._template = None  # the cache of one token, for blank ones

    def reset(self, timing: bool):
        """Forgets all sequences. `timing`: steps may continue texts that were never computed."""
        self.timing = timing
        self.texts, self.caches, self.batches = {}, {}, []
        self.logits = []

    def release(self, slots):
        for slot in slots:
            self.texts.pop(slot, None)
            self.caches.pop(slot, None)
        for batch in self.batches:
            batch.slots = tuple(None if slot in slots else slot for slot in batch.slots)
        self.batches = [batch for batch in self.batches if any(slot is not None for slot in batch.slots)]

    def execute(self, segments: list[Segment], logit_rows: int):
        self.logits = [None] * logit_rows
        decodes = []
        for segment in segments:
            self._extend(segment)
            if self.ways.cached and len(segment.tokens) == 1 and segment.context > 0 and self._has_cache(segment.slot):
                decodes.append(segment)
            elif self.ways.chunked:
                self._chunk(segment)
            else:
                self._whole(segment)
        if self.ways.batched:
            self._decode_batches(decodes)
        else:
            for segment in decodes:
                self._chunk(segment)

    def _extend(self, segment: Segment):
        slot = segment.slot
        if segment.context == 0:
            self.release([slot])
        known = self.texts.setdefault(slot, [])
        if self.timing and len(known) != segment.context:
            self._invent(slot, segment.context)
            known = self.texts[slot]
        if len(known) != segment.context:
            raise ValueError(f"slot {slot} has {len(known)} tokens, and the step continues after {segment.context}")
        known.extend(segment.tokens)

    def _has_cache(self, slot: int) -> bool:
        return slot in self.caches or any(slot in batch.slots for batch in self.batches)

    def _invent(self, slot: int, length: int):
        """A text that was never computed, to time steps after it."""
        self.release([slot])
        self.texts[slot] = [0] * length
        if not self.ways.cached or length == 0:
            return
        if self._template is None:
            self._template = self.model.run(torch.tensor([[0]]), self.model.new_cache(), keep=1)[1]
        if caches.can_join(self._template):
            self.caches[slot] = caches.blank(self._template, length)
        else:
            self.caches[slot] = self.model.run(torch.zeros(1, length, dtype=torch.long), self.model.new_cache(),
                                               keep=1)[1]

    def _chunk(self, segment: Segment):
        cache = self._take_out(segment.slot)
        if cache is None:
            cache = self.model.new_cache()
        keep = len(segment.tokens) - min(segment.wanted, default=len(segment.tokens) - 1)
        logits, self.caches[segment.slot] = self.model.run(
            torch.tensor([segment.tokens]), cache, [segment.context], keep=keep)
        self._keep(segment, logits[0], len(segment.tokens) - keep)

    def _whole(self, segment: Segment):
        """Computes the whole text so far, when logits of it are wanted."""
        if not segment.wanted:
            return
        text = self.texts[segment.slot]
        keep = len(segment.tokens) - segment.wanted[0]
        cache = self.model.new_cache() if self.ways.cached else None
        logits, cache = self.model.run(torch.tensor([text]), cache, keep=keep)
        if cache is not None:
            self.caches[segment.slot] = cache
        self._keep(segment, logits[0], len(segment.tokens) - keep)

    def _keep(self, segment: Segment, logits: torch.Tensor, first: int):
        """`logits` are those of the segment's rows from `first` on."""
        for i, row in enumerate(segment.wanted):
            self.logits[segment.at + i] = logits[row - first]

    def _decode_batches(self, decodes: list[Segment]):
        wanted = [tuple(segment.slot for segment in part) for part in _parts(decodes)]
        for batch in [batch for batch in self.batches if batch.slots not in wanted]:
            self._dissolve(batch)
        by_slot = {segment.slot: segment for segment in decodes}
        for slots in wanted:
            self._decode(slots, by_slot)

    def _decode(self, slots: tuple, by_slot: dict):
        segments = [by_slot[slot] for slot in slots]
        batch = next((batch for batch in self.batches if batch.slots == slots), None)
        if batch is None:
            lengths = [segment.context for segment in segments]
            batch = Batch(slots, lengths, caches.join([self.caches.pop(slot) for slot in slots]))
            self.batches.append(batch)
        logits, batch.cache = self.model.run(torch.tensor([segment.tokens for segment in segments]), batch.cache,
                                             batch.lengths, keep=1)
        batch.lengths = [length + 1 for length in batch.lengths]
        for row, segment in zip(logits, segments):
            self._keep(segment, row, 0)

    def _dissolve(self, batch: Batch):
        """Gives each row a cache of its own."""
        self.batches.remove(batch)
        for row, (slot, length) in enumerate(zip(batch.slots, batch.lengths)):
            if slot is not None:
                self.caches[slot] = caches.split(batch.cache, row, length)

    def _take_out(self, slot: int):
        for batch in [batch for batch in self.batches if slot in batch.slots]:
            self._dissolve(batch)
        return self.caches.pop(slot, None)


def _parts(decodes: list[Segment]) -> list[list[Segment]]:
    """Rows of similar lengths together, so that padding does not take more than the texts."""
    parts = []
    longest = real = 0
    for segment in sorted(decodes, key=lambda one: (-one.context, one.slot)):
        fits = parts and (len(parts[-1]) + 1) * longest <= 2 * (real + segment.context) + _SPARE_PADDING
        if not fits:
            parts.append([])
            longest, real = segment.context, 0
        parts[-1].append(segment)
        real += segment.context
    return [sorted(part, key=lambda one: one.slot) for part in parts]
