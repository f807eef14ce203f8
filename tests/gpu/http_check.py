"""Serves the demo model on the GPU with each backend and layout, and compares the answers.

usage: http_check.py --bin FOLDER --out FOLDER

Every server on the GPU must give the greedy answers of one server on the CPU: own kernels and libtorch, paged and
padded layout, one rank and two that share the GPU. Needs only Python. Writes http.json: a list of
{test, outcome, seconds, reason}.
"""

import argparse
import glob
import json
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROMPTS = ["The cat", "A small boat", "In the morning", "She said", "There was a"]
CASES = {
    "cuda": ["--backend", "cuda"],
    "cuda_two_ranks_share_the_gpu": ["--backend", "cuda", "--num-shard", "2", "--share-gpus"],
    "reference_paged": ["--backend", "reference"],
    "reference_padded": ["--backend", "reference", "--kv-layout", "padded"],
    "reference_contrastive": ["--backend", "reference", "--contrastive-search"],
}
PROGRAMS = ["penstock-launcher", "penstock-router", "penstock-shard"]


class Server:
    """A launcher and its children. Ready when the launcher says so; else RuntimeError with its last line."""

    start_seconds = 200

    def __init__(self, bin_folder, model, log, *options):
        command = [bin_folder / "penstock-launcher", "--model-id", str(model), "--port", "0", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.log = open(log, "w")
        self.ready = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.address = self.ready.get(timeout=self.start_seconds)
        except queue.Empty:
            self.address = None
        if not (self.address or "").startswith("http"):
            self.stop()
            raise RuntimeError(self.address or f"not ready within {self.start_seconds} s")

    def _read(self):
        """Gives the address once the server is ready, and the last line when its output ends."""
        last, is_ready = "no output", False
        for line in self.process.stdout:
            self.log.write(line)
            self.log.flush()
            last = line.strip() or last
            is_ready = is_ready or " is ready after " in line
            found = re.search(r"http://[\d.]+:\d+", line) if is_ready else None
            if found:
                self.ready.put(found.group())
        self.ready.put(last)

    def answer(self, prompt):
        body = {"inputs": prompt, "parameters": {"max_new_tokens": 40, "do_sample": False}}
        request = urllib.request.Request(
            self.address + "/generate",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        return json.load(urllib.request.urlopen(request, timeout=120))["generated_text"]

    def answers(self):
        with ThreadPoolExecutor(len(PROMPTS)) as pool:
            return list(pool.map(self.answer, PROMPTS))

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise RuntimeError("the launcher did not stop within 60 s") from None


def run_case(name, options, args, model, wanted):
    """Answers, and what is to be said of the case."""
    begin = time.monotonic()
    result = {"test": f"Http.{name}", "outcome": "passed", "seconds": 0, "reason": ""}
    answers = None
    try:
        server = Server(args.bin, model, args.out / f"http_{name}.log", "--dtype", "float32", *options)
        try:
            answers = server.answers()
        finally:
            server.stop()
        if wanted is not None and answers != wanted:
            result.update(outcome="failed", reason=f"{answers!r} is not the CPU's {wanted!r}")
    except (RuntimeError, OSError, KeyError, ValueError) as error:
        result.update(outcome="failed", reason=str(error))
    result["seconds"] = time.monotonic() - begin
    return answers, result


def skipped(name, reason):
    return {"test": f"Http.{name}", "outcome": "skipped", "seconds": 0, "reason": reason}


def has_gpu():
    if glob.glob("/dev/nvidia[0-9]*"):
        return True
    smi = shutil.which("nvidia-smi")
    return smi is not None and subprocess.run([smi, "-L"], capture_output=True).returncode == 0


def why_not(bin_folder):
    """Why no server can run on a GPU here; empty if one can."""
    for program in PROGRAMS + ["penstock-shard-cuda"]:
        if not (bin_folder / program).exists():
            return f"{program} is not built"
    return "" if has_gpu() else "this machine shows no NVIDIA GPU"


def why_no_cpu(bin_folder, models):
    """Why no server can run on the CPU here; empty if one can."""
    if not models:
        return "the demo model is missing"
    for program in PROGRAMS:
        if not (bin_folder / program).exists():
            return f"{program} is not built"
    command = [bin_folder / "penstock-shard", "--version"]
    starts = subprocess.run(command, capture_output=True, text=True)
    return "" if starts.returncode == 0 else starts.stderr.strip().splitlines()[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    root = Path(__file__).resolve().parents[2]
    models = [p for p in (root / "share/penstock/demo-model", root / "demo/model") if (p / "config.json").exists()]
    results = []
    reason = why_not(args.bin) if models else "the demo model is missing"
    missing = why_no_cpu(args.bin, models)
    wanted = None
    if missing:
        results.append(skipped("cpu", missing))
        reason = reason or missing
    else:
        wanted, result = run_case("cpu", ["--device", "cpu"], args, models[0], None)
        results.append(result)
    for name, options in CASES.items():
        if reason:
            results.append(skipped(name, reason))
        else:
            results.append(run_case(name, ["--device", "cuda"] + options, args, models[0], wanted)[1])
        (args.out / "http.json").write_text(json.dumps(results, indent=1) + "\n")
    return 1 if any(result["outcome"] == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
