"""GPU benchmarks of an 8B Llama shape: the backend alone, over HTTP, under heavy load for minutes, and HF
transformers for comparison.

usage: bench.py decode|serve|load|hf --model FOLDER --bin FOLDER --out FOLDER [--minutes-of-load 5]
                [--streams 1,8,32,64,256]

The model is made (16 GB of random weights) if it is not there. Writes PIECE.json, a list of
{test, outcome, seconds, reason, figures}; what the machine lacks is skipped by name. Needs Python alone, and torch with
transformers and accelerate for hf.
"""

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from http_check import Server, has_gpu  # noqa: E402

STREAMS = (1, 8, 32, 64, 256)
NAMES = {
    "decode": ["rates"] + [f"decode_b{n}" for n in STREAMS] + ["gaps_b64", "prefill_2048"],
    "serve": [f"http_{n}_streams" for n in STREAMS],
    "load": ["steady_memory"],
    "hf": ["hf_continuous_batching"],
}
MODEL_GIB = 18
# The made model's tokens are bytes, of which a made word has 5.5 with its space: prompts of about 1,024 tokens.
PROMPT_WORDS = 186
NEW_TOKENS = 128


def entry(name, outcome, reason="", seconds=0.0, figures=None):
    return {
        "test": f"Bench.{name}",
        "outcome": outcome,
        "seconds": seconds,
        "reason": reason or (json.dumps(figures) if figures else ""),
        "figures": figures or {},
    }


def why_not(args):
    if args.piece == "hf":
        for package in ("torch", "transformers", "accelerate"):
            if importlib.util.find_spec(package) is None:
                return f"{package} is not installed"
    if not (args.bin / "penstock-gpu-bench").exists():
        return "penstock-gpu-bench is not built"
    if not has_gpu():
        return "this machine shows no NVIDIA GPU"
    args.model.mkdir(parents=True, exist_ok=True)
    has_model = (args.model / "config.json").exists()
    if not has_model and shutil.disk_usage(args.model).free < MODEL_GIB << 30:
        return f"{args.model} has no room for a model of {MODEL_GIB} GiB"
    return ""


def make_model(args):
    if (args.model / "config.json").exists():
        return
    command = [args.bin / "penstock-make-model", "--shape", "8b", "--output", args.model, "--overwrite"]
    begin = time.monotonic()
    subprocess.run(command, check=True)
    print(f"the model was made in {time.monotonic() - begin:.1f} s", flush=True)


def run_decode(args):
    """The program tells each figure as soon as it has it."""
    with open(args.out / "decode-errors.log", "w+") as errors:
        program = subprocess.Popen(
            [args.bin / "penstock-gpu-bench", args.model], stdout=subprocess.PIPE, stderr=errors, text=True
        )
        told, begin = set(), time.monotonic()
        for line in program.stdout:
            figures = json.loads(line)
            name = figures.pop("test")
            told.add(name)
            yield entry(name, "passed", seconds=time.monotonic() - begin, figures=figures)
            begin = time.monotonic()
        status = program.wait()
        errors.seek(0)
        reason = (errors.read().strip().splitlines() or ["ended early"])[-1]
    outcome = "skipped" if status == 77 else "failed"
    for name in NAMES["decode"]:
        if name not in told:
            yield entry(name, outcome, reason)


def load(args, server, streams, requests):
    report = args.out / f"load_{streams}.json"
    command = [args.bin / "penstock-bench", "--url", server.address, "--concurrency", str(streams)]
    command += ["--requests", str(requests), "--warmup", str(streams), "--prompt-words", str(PROMPT_WORDS)]
    command += ["--max-new-tokens", str(NEW_TOKENS), "--output", report]
    subprocess.run(command, check=True, timeout=300)
    return json.loads(report.read_text())


def used_memory():
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return [int(x) for x in subprocess.check_output(command, text=True).split()]


def start_server(args):
    Server.start_seconds = 240
    log = args.out / f"server_{args.piece}.log"
    options = ["--device", "cuda", "--dtype", "bfloat16", "--max-concurrent-requests", str(2 * STREAMS[-1])]
    return Server(args.bin, args.model, log, *options)


def run_serve(args):
    server = start_server(args)
    try:
        for streams in args.streams:
            name = f"http_{streams}_streams"
            begin = time.monotonic()
            figures = load(args, server, streams, max(8, 3 * streams))
            failures = figures["failures"]
            outcome, reason = ("failed", f"{failures} requests failed") if failures else ("passed", "")
            yield entry(name, outcome, reason, time.monotonic() - begin, figures)
    finally:
        server.stop()


def run_load(args):
    server = start_server(args)
    try:
        before = used_memory()
        begin = time.monotonic()
        samples = []
        while time.monotonic() - begin < 60 * args.minutes_of_load:
            load(args, server, STREAMS[-1], 2 * STREAMS[-1])
            samples.append(used_memory())
    finally:
        server.stop()
    figures = {"used_mib_when_ready": before, "used_mib": samples}
    flat = all(b - a < 64 for sample in samples for a, b in zip(before, sample))
    yield entry(
        "steady_memory",
        "passed" if flat else "failed",
        "" if flat else f"memory grew: {figures}",
        time.monotonic() - begin,
        figures,
    )


HF_SCRIPT = """
import sys, time, json, inspect, torch
from transformers import AutoModelForCausalLM, GenerationConfig
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16, device_map="cuda")
config = GenerationConfig(max_new_tokens=128, do_sample=False, eos_token_id=-1)
inputs = [[7 + i] * 1024 for i in range(64)]
known = inspect.signature(model.generate_batch).parameters
more = {"persistent_manager": True} if "persistent_manager" in known else {}
for _ in range(2):
    begin = time.monotonic()
    outputs = model.generate_batch(inputs=inputs, generation_config=config, **more)
    seconds = time.monotonic() - begin
tokens = sum(len(o.generated_tokens) for o in outputs.values())
print(json.dumps({"streams": 64, "tokens_per_second": tokens / seconds}))
"""


def run_hf(args):
    """A peer that does not run here is no failure of ours."""
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-c", HF_SCRIPT, args.model], capture_output=True, text=True, timeout=480
        )
        reason = "" if done.returncode == 0 else (done.stderr.splitlines() or ["nothing"])[-1]
    except subprocess.TimeoutExpired:
        reason = "480 s"
    if reason:
        yield entry("hf_continuous_batching", "skipped", f"it ended with: {reason}")
        return
    figures = json.loads(done.stdout.splitlines()[-1])
    yield entry("hf_continuous_batching", "passed", "", time.monotonic() - begin, figures)


RUN = {"decode": run_decode, "serve": run_serve, "load": run_load, "hf": run_hf}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("piece", choices=list(RUN))
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--minutes-of-load", type=float, default=5)
    parser.add_argument("--streams", type=lambda text: [int(x) for x in text.split(",")], default=list(STREAMS))
    args = parser.parse_args()
    NAMES["serve"] = [f"http_{n}_streams" for n in args.streams]
    results = []

    def add(result):
        results.append(result)
        (args.out / f"{args.piece}.json").write_text(json.dumps(results, indent=1) + "\n")

    reason = why_not(args)
    if reason:
        for name in NAMES[args.piece]:
            add(entry(name, "skipped", reason))
        return 0
    try:
        make_model(args)
        for result in RUN[args.piece](args):
            add(result)
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
        told = {result["test"] for result in results}
        for name in NAMES[args.piece]:
            if f"Bench.{name}" not in told:
                add(entry(name, "failed", str(error)))
    return 1 if any(result["outcome"] == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
