"""Which tokens the warpers of HF transformers keep, for 10,000 and more rows with ties and extremes.

Both sides make the rows and parameters from the same numbers (SplitMix64 from a seed), so the golden holds only the
kept ids: eight hexadecimal digits a row, bit i for token i. A row that a change of one part in ten thousand would
decide has "-", since rounding could decide it. `top_n_sigma` has no warper in transformers; here it is its paper's
formula (arXiv:2411.07641): the logit is at least the largest less n standard deviations of the row.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from sampling_goldens import warpers

VOCABULARY = 32
ROWS = 11_500  # of which some 10,400 are decided
GOLDEN = Path(__file__).resolve().parents[1] / "data" / "goldens" / "sampling_rows.txt"
SEED = 2411
MASK = (1 << 64) - 1

TEMPERATURES = (1.0, 1.0, 0.25, 0.5, 2.0, 8.0)
TOP_K = (0, 0, 1, 2, 5, 31, 32, 100)
TOP_P = (1.0, 1.0, 0.125, 0.5, 0.875, 0.984375)
MIN_P = (0.0, 0.0, 0.03125, 0.25, 0.875)
TYPICAL_P = (1.0, 1.0, 0.25, 0.875, 0.984375)
SIGMA = (0.0, 0.0, 0.5, 1.0, 2.5)
SCALES = (0.0, 0.125, 1.0, 8.0, 1e4, 1e30)


class Numbers:
    def __init__(self, seed: int):
        self.state = seed

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def pick(self, values):
        return values[self.next() % len(values)]


def draw_row(numbers: Numbers) -> np.ndarray:
    """Multiples of a scale; a narrow range makes many ties, and some tokens are masked."""
    scale = np.float32(numbers.pick(SCALES))
    span = numbers.pick((3, 9, 65))
    masked = numbers.pick((0, 0, 4, 2))
    row = []
    for _ in range(VOCABULARY):
        value = np.float32(numbers.next() % span) - np.float32(span // 2)
        hidden = masked and numbers.next() % masked == 0 and row
        row.append(-np.inf if hidden else np.float32(value * scale))
    return np.array(row, dtype=np.float32)


def draw_parameters(numbers: Numbers) -> dict:
    return {"temperature": numbers.pick(TEMPERATURES), "top_k": numbers.pick(TOP_K), "top_p": numbers.pick(TOP_P),
            "min_p": numbers.pick(MIN_P), "typical_p": numbers.pick(TYPICAL_P), "top_n_sigma": numbers.pick(SIGMA)}


def kept(row: torch.Tensor, parameters: dict) -> list[int]:
    scores = row.clone()
    if parameters["top_n_sigma"] > 0:
        seen = row[torch.isfinite(row)].double()
        border = seen.max() - parameters["top_n_sigma"] * seen.std(correction=0)
        scores[row.double() < border] = -np.inf
    if parameters["top_k"] > VOCABULARY:
        parameters = parameters | {"top_k": VOCABULARY}
    scores = warpers(parameters)(torch.zeros((1, 1), dtype=torch.long), scores[None])[0]
    return torch.isfinite(scores).nonzero().flatten().tolist()


def same(row: torch.Tensor, one: list[int], other: list[int]) -> bool:
    """Up to equal scores."""
    return sorted(row[one].tolist()) == sorted(row[other].tolist())


def row_text(row: torch.Tensor, parameters: dict) -> str:
    ids = kept(row, parameters)
    for factor in (0.9999, 1.0001):
        moved = {key: value * factor if key == "top_n_sigma" or (key not in ("temperature", "top_k") and 0 < value < 1)
                 else value for key, value in parameters.items()}
        if not same(row, ids, kept(row, moved)):
            return "-"
    if not same(row, ids, kept(row.double(), parameters)):
        return "-"
    return f"{sum(1 << i for i in ids):08x}"


def rows() -> str:
    numbers = Numbers(SEED)
    lines = []
    for _ in range(ROWS):
        row = torch.from_numpy(draw_row(numbers))
        lines.append(row_text(row, draw_parameters(numbers)))
    return "\n".join(lines) + "\n"


def main() -> int:
    golden = rows()
    if "--check" in sys.argv:
        return 0 if GOLDEN.read_text() == golden else f"{GOLDEN} differs"
    GOLDEN.write_text(golden)
    print(f"oracle: sampling rows: {ROWS - golden.count('-')} of {ROWS} decided")
    return 0


if __name__ == "__main__":
    sys.exit(main())
