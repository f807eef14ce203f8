"""What the logits processors of HF transformers leave of random rows: the reference for shard/sampling.

Each case is one row of logits, history and parameters; the result is the processed row (repetition penalty) and
the ids that survive the warpers with their probabilities. A case is kept only if slightly other parameters
(one part in ten thousand) keep the same ids, so that rounding cannot decide it.
"""

import numpy as np
import torch
from transformers import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                          TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, TypicalLogitsWarper)

VOCABULARY = 48
CASES = 40
SEED = 7


def warpers(parameters: dict) -> LogitsProcessorList:
    """In the order of transformers' `_get_logits_processor`; neutral values are left out there too."""
    made = LogitsProcessorList()
    if parameters["temperature"] != 1.0:
        made.append(TemperatureLogitsWarper(parameters["temperature"]))
    if parameters["top_k"] > 0:
        made.append(TopKLogitsWarper(parameters["top_k"]))
    if parameters["top_p"] < 1.0:
        made.append(TopPLogitsWarper(parameters["top_p"]))
    if parameters["min_p"] > 0.0:
        made.append(MinPLogitsWarper(parameters["min_p"]))
    if parameters["typical_p"] < 1.0:
        made.append(TypicalLogitsWarper(parameters["typical_p"]))
    return made


def survivors(processed: torch.Tensor, parameters: dict) -> tuple[list[int], torch.Tensor]:
    scores = warpers(parameters)(torch.zeros((1, 1), dtype=torch.long), processed.clone()[None])[0]
    return torch.isfinite(scores).nonzero().flatten().tolist(), scores.softmax(-1)


def draw_parameters(source: np.random.RandomState) -> dict:
    def sometimes(value, neutral):
        return value if source.rand() < 0.6 else neutral

    return {
        "repetition_penalty": sometimes(round(0.8 + source.rand(), 3), 1.0),
        "temperature": sometimes(round(0.4 + 1.4 * source.rand(), 3), 1.0),
        "top_k": sometimes(int(source.randint(1, VOCABULARY)), 0),
        "top_p": sometimes(round(0.2 + 0.79 * source.rand(), 3), 1.0),
        "min_p": sometimes(round(0.2 * source.rand() + 0.001, 3), 0.0),
        "typical_p": sometimes(round(0.2 + 0.79 * source.rand(), 3), 1.0)}


def is_robust(processed: torch.Tensor, parameters: dict, kept: list[int]) -> bool:
    for factor in (0.9999, 1.0001):
        moved = parameters | {key: parameters[key] * factor if 0.0 < parameters[key] < 1.0 else parameters[key]
                              for key in ("top_p", "min_p", "typical_p")}
        if survivors(processed, moved)[0] != kept:
            return False
    return survivors(processed.double(), parameters)[0] == kept


def make_case(source: np.random.RandomState) -> dict | None:
    logits = (source.standard_normal(VOCABULARY) * source.choice([0.5, 1.5, 4.0])).round(4)
    history = source.randint(0, VOCABULARY, size=source.randint(1, 12)).tolist()
    parameters = draw_parameters(source)
    row = torch.tensor([logits.tolist()], dtype=torch.float32)
    if parameters["repetition_penalty"] != 1.0:
        row = RepetitionPenaltyLogitsProcessor(parameters["repetition_penalty"])(torch.tensor([history]), row)
    kept, probabilities = survivors(row[0], parameters)
    if not is_robust(row[0], parameters, kept):
        return None
    return {"logits": logits.tolist(), "history": history, "parameters": parameters,
            "processed": [float(f"{v:.7g}") for v in row[0].tolist()], "kept": kept,
            "probabilities": [float(f"{probabilities[i].item():.7g}") for i in kept]}


def sampling_golden() -> dict:
    source = np.random.RandomState(SEED)
    cases = []
    while len(cases) < CASES:
        if case := make_case(source):
            cases.append({"name": f"row {len(cases)}"} | case)
    return {"vocabulary": VOCABULARY, "cases": cases}
