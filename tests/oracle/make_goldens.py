#!/usr/bin/env python3
"""Reference results of HF transformers in float32 for the demo model and the tiny models.

    make_goldens.py            writes tests/data/models and tests/data/goldens
    make_goldens.py --check    recomputes and compares with the committed files; writes nothing

The format is described in tests/data/README.md. Greedy decoding recomputes the whole sequence for each
token: no cache, so nothing is shared with what the goldens test.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, RepetitionPenaltyLogitsProcessor

import tiny_models
from sampling_goldens import sampling_golden

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests" / "data"
PENALTY = 1.3
GREEDY_TOKENS = 64
CHECK_TOLERANCE = 2e-5  # other processors sum in another order
# A greedy step whose best two logits are closer than this says nothing about correctness.
CLOSE_CALL = 1e-3
LONG_TEXT = " ".join(
    f"{name} went to the {place} and found a {colour} {thing}. \"{name}, look!\" said the {animal}."
    for name, place, colour, thing, animal in zip(
        "Lily Tom Mia Ben Anna Sam Emma Max Nora Leo Ella Jack Ruby Tim Zoe Finn Maya Paul".split(),
        "park forest garden market river lake beach hill meadow farm school library bridge village pond mill "
        "field castle".split(),
        "red blue green yellow orange purple pink white black brown golden silver grey red blue green pink "
        "white".split(),
        "ball kite doll drum boat puzzle bucket book hat scarf whistle lantern box bell basket flute ring "
        "key".split(),
        "rabbit fox bear mouse squirrel duck frog hedgehog owl kitten puppy turtle deer otter beaver lamb pony "
        "goose".split()))
DEMO_PROMPTS = [
    ("story", "Once upon a time"),
    ("girl", "One day, a little girl named"),
    ("long", LONG_TEXT),
    ("greeting", [{"role": "user", "content": "Hello!"}]),
    ("how are you", [{"role": "user", "content": "Hi, how are you?"}]),
    ("abilities", [{"role": "system", "content": "You are a helpful assistant."},
                   {"role": "user", "content": "What can you do?"}]),
    ("turns", [{"role": "user", "content": "What colour is the sky?"},
               {"role": "assistant", "content": "The sky is blue."},
               {"role": "user", "content": "What does a cow say?"}]),
    ("unicode", "Grüße, 世界! 👩‍👩‍👧 said the fox."),
]
TINY_PROMPTS = [("short", "Hello"), ("sentence", "The quick brown fox jumps over the lazy dog."),
                ("long", LONG_TEXT[:180])]


def rounded(value: float) -> float:
    return float(f"{value:.7g}")


class Oracle:
    """A checkpoint in float32 with the plain attention of transformers."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager").eval()
        ends = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
        self.ends = ends if isinstance(ends, list) else [ends]

    @torch.no_grad()
    def logits(self, ids: list[int]) -> torch.Tensor:
        return self.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]

    def greedy(self, prompt: list[int], penalty: float = 1.0) -> dict:
        """What `generate(do_sample=False)` returns: ids with the end token, and why it ended."""
        processor = RepetitionPenaltyLogitsProcessor(penalty)
        ids, logprobs, margins = list(prompt), [], []
        while len(ids) - len(prompt) < GREEDY_TOKENS:
            row = processor(torch.tensor([ids]), self.logits(ids)[-1:].clone())[0]
            best = row.topk(2)
            margins.append((best.values[0] - best.values[1]).item())
            logprobs.append(rounded(row.log_softmax(-1).max().item()))
            ids.append(int(best.indices[0]))
            if ids[-1] in self.ends:
                break
        made = ids[len(prompt):]
        return {"ids": made, "logprobs": logprobs, "finish": "eos" if made[-1] in self.ends else "length",
                "margin": rounded(min(margins)), "text": self.tokenizer.decode(made, skip_special_tokens=True)}

    def encode(self, prompt: str | list[dict]) -> tuple[str, list[int]]:
        if isinstance(prompt, str):
            return prompt, self.tokenizer(prompt)["input_ids"]
        text = self.tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
        return text, self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def golden(self, name: str, prompt: str | list[dict]) -> dict:
        text, ids = self.encode(prompt)
        logits = self.logits(ids)
        logprobs = logits.log_softmax(-1)
        positions = sorted({0, len(ids) // 2, len(ids) - 1})
        messages = {} if isinstance(prompt, str) else {"messages": prompt}
        return {
            "name": name, **messages, "text": text, "ids": ids,
            "prompt_logprobs": [None] + [rounded(logprobs[i - 1, ids[i]].item()) for i in range(1, len(ids))],
            "logits": [{"position": p, "values": [rounded(v) for v in logits[p].tolist()]} for p in positions],
            "greedy": self.greedy(ids),
            "repetition_penalty": {"penalty": PENALTY, **self.greedy(ids, PENALTY)}}


def weights_digest(folder: Path) -> str:
    """Tells a golden that is older than its model from one that is wrong."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")) + [folder / "tokenizer.json"]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def versions() -> dict:
    return {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}


def golden_file(folder: Path, prompts: list) -> dict:
    oracle = Oracle(folder)
    return {
        "model": folder.relative_to(REPOSITORY).as_posix(), "dtype": "float32", "sha256": weights_digest(folder),
        "made_with": versions(), "eos_token_ids": oracle.ends,
        "cases": [oracle.golden(name, prompt) for name, prompt in prompts]}


def all_goldens() -> dict[str, dict]:
    goldens = {"demo": golden_file(REPOSITORY / "demo" / "model", DEMO_PROMPTS)}
    for name in tiny_models.FAMILIES:
        goldens[name] = golden_file(DATA / "models" / name, TINY_PROMPTS)
    goldens["sampling"] = sampling_golden() | {"made_with": versions()}
    return goldens


def to_text(golden: dict) -> str:
    """JSON with one case a line, so that a diff shows which case changed."""
    head = {key: value for key, value in golden.items() if key != "cases"}
    lines = [json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in golden["cases"]]
    return json.dumps(head, indent=1)[:-2] + ',\n "cases": [\n' + ",\n".join(lines) + "\n]}\n"


def differences(path: str, old, new) -> list[str]:
    """Where two JSON values differ: numbers by the tolerance, all else exactly."""
    if isinstance(old, float) or isinstance(new, float):
        close = old is not None and new is not None and abs(old - new) <= CHECK_TOLERANCE
        return [] if close else [f"{path}: {old} committed, {new} computed"]
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys():
        return [line for key in old for line in differences(f"{path}.{key}", old[key], new[key])]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [line for i, pair in enumerate(zip(old, new)) for line in differences(f"{path}[{i}]", *pair)]
    return [] if old == new else [f"{path}: {str(old)[:60]} committed, {str(new)[:60]} computed"]


def close_calls(goldens: dict[str, dict]) -> list[str]:
    return [f"{name}, case {case['name']}, {kind}: best two logits only {case[kind]['margin']} apart"
            for name, golden in goldens.items() for case in golden["cases"]
            for kind in ("greedy", "repetition_penalty") if kind in case and case[kind]["margin"] < CLOSE_CALL]


def check(goldens: dict[str, dict]) -> list[str]:
    problems = []
    for name, golden in goldens.items():
        path = DATA / "goldens" / f"{name}.json"
        if not path.exists():
            problems.append(f"{path.relative_to(REPOSITORY)} is absent")
            continue
        committed = json.loads(path.read_text())
        committed.pop("made_with"), golden.pop("made_with")
        problems += differences(name, committed, golden)
    return problems


def write(goldens: dict[str, dict]) -> None:
    folder = DATA / "goldens"
    folder.mkdir(parents=True, exist_ok=True)
    for name, golden in goldens.items():
        (folder / f"{name}.json").write_text(to_text(golden))
        print(f"oracle: {name}: {len(golden['cases'])} cases")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.check:
        tiny_models.make_all(DATA / "models")
    goldens = all_goldens()
    problems = close_calls(goldens)
    if arguments.check:
        problems += check(goldens)
    else:
        write(goldens)
    for problem in problems[:20]:
        print(f"oracle: {problem}", file=sys.stderr)
    print(f"oracle: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
