"""GPU benchmarks of an 8B Llama shape: the backend itself, through HTTP, and HF transformers beside it.

usage: bench.py --bin FOLDER --out FOLDER [--model FOLDER] [--minutes-of-load 5]

Without --model the model is made in FOLDER/8b (16 GB). Writes bench.json, a list of
{test, outcome, seconds, reason, figures}; what the machine lacks is skipped by name. Needs Python alone, and torch with
transformers for the last one.
"""

import argparse
import glob
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from http_check import Server  # noqa: E402

STREAMS = (1, 8, 32, 64, 256)
BACKEND = ["rates"] + [f"decode_b{n}" for n in STREAMS] + ["prefill_2048"]
HTTP = [f"http_{n}_streams" for n in STREAMS]
NAMES = BACKEND + HTTP + ["steady_memory", "hf_continuous_batching"]
MODEL_GIB = 18


def entry(name, outcome, reason="", seconds=0.0, figures=None):
    return {
        "test": f"Bench.{name}",
        "outcome": outcome,
        "seconds": seconds,
        "reason": reason or (json.dumps(figures) if figures else ""),
        "figures": figures or {},
    }


def why_not(args):
    if not (args.bin / "penstock-gpu-bench").exists():
        return "penstock-gpu-bench is not built"
    if not glob.glob("/dev/nvidia[0-9]*"):
        return "this machine shows no NVIDIA GPU"
    if args.model is None and shutil.disk_usage(args.out).free < MODEL_GIB << 30:
        return f"{args.out} has no room for a model of {MODEL_GIB} GiB"
    return ""


def make_model(args):
    if args.model is not None:
        return args.model
    model = args.out / "8b"
    if not (model / "config.json").exists():
        command = [args.bin / "penstock-make-model", "--shape", "8b", "--output", model]
        subprocess.run(command, check=True)
    return model


def run_backend(args, model):
    begin = time.monotonic()
    done = subprocess.run(
        [args.bin / "penstock-gpu-bench", model], capture_output=True, text=True, timeout=900
    )
    results = []
    for line in done.stdout.splitlines():
        figures = json.loads(line)
        name = figures.pop("test")
        results.append(entry(name, "passed", seconds=time.monotonic() - begin, figures=figures))
    told = {result["test"] for result in results}
    outcome = "skipped" if done.returncode == 77 else "failed"
    reason = (done.stderr.strip().splitlines() or ["ended early"])[-1]
    return results + [entry(n, outcome, reason) for n in BACKEND if f"Bench.{n}" not in told]


def load(args, server, streams, requests):
    report = args.out / f"load_{streams}.json"
    command = [args.bin / "penstock-bench", "--url", server.address, "--concurrency", str(streams)]
    command += ["--requests", str(requests), "--warmup", str(streams), "--prompt-words", "700"]
    command += ["--max-new-tokens", "128", "--output", report]
    subprocess.run(command, check=True, timeout=900)
    return json.loads(report.read_text())


def used_memory():
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return [int(x) for x in subprocess.check_output(command, text=True).split()]


def run_http(args, model):
    results = []
    server = Server(args.bin, model, args.out / "bench_http.log", "--device", "cuda", "--dtype", "bfloat16")
    try:
        for name, streams in zip(HTTP, STREAMS):
            begin = time.monotonic()
            figures = load(args, server, streams, max(8, 3 * streams))
            results.append(entry(name, "passed", "", time.monotonic() - begin, figures))
        before = used_memory()
        begin = time.monotonic()
        while time.monotonic() - begin < 60 * args.minutes_of_load:
            load(args, server, STREAMS[-1], 2 * STREAMS[-1])
        after = used_memory()
        figures = {"used_mib_before": before, "used_mib_after": after}
        flat = all(b - a < 64 for a, b in zip(before, after))
        outcome = "passed" if flat else "failed"
        results.append(entry("steady_memory", outcome, "", time.monotonic() - begin, figures))
    finally:
        server.stop()
    return results


HF_SCRIPT = """
import sys, time, json, torch
from transformers import AutoModelForCausalLM, GenerationConfig
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16, device_map="cuda")
config = GenerationConfig(max_new_tokens=128, do_sample=False, eos_token_id=-1, use_cuda_graph=True)
inputs = [[7 + i] * 1024 for i in range(64)]
for _ in range(2):
    begin = time.monotonic()
    outputs = model.generate_batch(inputs=inputs, generation_config=config)
    seconds = time.monotonic() - begin
tokens = sum(len(o.generated_tokens) for o in outputs.values())
print(json.dumps({"streams": 64, "tokens_per_second": tokens / seconds}))
"""


def run_hf(model):
    name = "hf_continuous_batching"
    for package in ("torch", "transformers", "accelerate"):
        if importlib.util.find_spec(package) is None:
            return entry(name, "skipped", f"{package} is not installed")
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", HF_SCRIPT, model], capture_output=True, text=True, timeout=900
    )
    if done.returncode != 0:
        return entry(name, "skipped", "it ended with: " + (done.stderr.splitlines() or ["nothing"])[-1])
    figures = json.loads(done.stdout.splitlines()[-1])
    return entry(name, "passed", "", time.monotonic() - begin, figures)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--minutes-of-load", type=float, default=5)
    args = parser.parse_args()
    reason = why_not(args)
    results = [entry(name, "skipped", reason) for name in NAMES] if reason else []
    if not reason:
        model = make_model(args)
        results += run_backend(args, model)
        try:
            results += run_http(args, model)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            told = {result["test"] for result in results}
            left = [n for n in HTTP + ["steady_memory"] if f"Bench.{n}" not in told]
            results += [entry(name, "failed", str(error)) for name in left]
        results.append(run_hf(model))
    (args.out / "bench.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
