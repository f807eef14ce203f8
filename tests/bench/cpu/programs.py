"""The programs of the CPU benchmarks: generated models, the shard alone, llama.cpp, a server under load."""

import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import measure  # noqa: E402  (also puts tests/integration on the path)
from penstock_testing import BIN, BUILD, REPOSITORY, Server  # noqa: E402,F401

MODELS = BUILD / "bench-models"
LLAMA = REPOSITORY / "build" / "llama"
THREADS = len(os.sched_getaffinity(0))
MAX_POSITION = 8192
TYPES = {"135m": "llama", "0.5b": "qwen2", "1.1b": "llama"}  # of the shapes


class Missing(RuntimeError):
    """A benchmark cannot run because a program or library is missing. It does not pass."""


def model(shape):
    """The folder of a generated model. Its GGUF file is beside it."""
    folder = MODELS / shape
    if not (folder / "config.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        command = [BIN / "penstock-make-model", "--output", folder, "--shape", shape, "--type", TYPES[shape]]
        command += ["--max-position", MAX_POSITION, "--gguf", gguf(shape)]
        subprocess.run([str(c) for c in command], check=True, stdout=sys.stderr)
    never_end(folder)
    return folder


def never_end(folder):
    """Removes the end-of-sequence ids, because random weights could end an answer at any time."""
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        config = json.loads(path.read_text())
        if config.pop("eos_token_id", None) is not None:
            path.write_text(json.dumps(config) + "\n")


def gguf(shape, quantization=None):
    plain = MODELS / f"{shape}.gguf"
    if quantization is None:
        return plain
    quantized = MODELS / f"{shape}-{quantization}.gguf"
    if not quantized.exists():
        partial = quantized.with_suffix(".partial")
        command = [llama_program("llama-quantize"), plain, partial, quantization, THREADS]
        subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        partial.rename(quantized)
    return quantized


def llama_program(name):
    path = LLAMA / "bin" / name
    if not path.exists():
        raise Missing("llama.cpp is not built: tests/bench/cpu/build_llama")
    return path


def llama_batches(file, rows, context, tokens=8):
    """{rows: tokens per second} of a batch whose sequences share one prompt. llama.cpp computes and reads
    it only once then."""
    size = context + max(rows) * (tokens + 1) + 64
    command = [llama_program("llama-batched-bench"), "-m", file, "-c", size, "-b", 2048, "-ub", 512]
    command += ["-npp", context, "-ntg", tokens, "-npl", ",".join(map(str, rows)), "-pps", "-kvu"]
    command += ["--output-format", "jsonl", "-t", THREADS, "-ngl", 0]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"llama-batched-bench: {done.stderr[-500:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["pl"]: line["speed_tg"] for line in lines}


class Answering:
    """A program that answers commands with lines of JSON, so that others can be measured in between."""

    def __init__(self, *command):
        self.name = pathlib.Path(command[0]).name
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.facts = self._answer()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.stdin.close()
        self.process.wait(60)

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended: {self.process.wait()}")
        return json.loads(line)

    def _ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self._answer()


class ShardAlone(Answering):
    """penstock-shard-bench with a shape of `model`, or with a folder."""

    def __init__(self, shape, *options, pool_tokens=16384, max_length=2560):
        folder = shape if isinstance(shape, pathlib.Path) else model(shape)
        super().__init__(BIN / "penstock-shard-bench", pool_tokens, max_length, "--model-id", folder,
                         "--cpu-threads", THREADS, "--log-level", "warning", *options)

    def peaks(self):
        return self._ask("peaks")

    def decode(self, rows, context, seconds=1.0):
        return self._ask("decode", rows, context, seconds)

    def prefill(self, tokens, seconds=0.5):
        return self._ask("prefill", tokens, seconds)

    def steps(self, rows, context, seconds):
        return self._ask("steps", rows, context, seconds)["seconds"]

    def prompts(self, tokens, seconds=0):
        return self._ask("prompts", tokens, seconds)["seconds"]

    def read(self, rows, context):
        return self._ask("read", rows, context)


class LlamaSteps(Answering):
    """llama.cpp, one step at a time."""

    def __init__(self, file, context):
        super().__init__(llama_program("llama-steps"), file, context, THREADS)

    def steps(self, count):
        return self._ask("decode", count)["seconds"]

    def prompts(self, tokens, count=2):
        return self._ask("prefill", tokens, count)["seconds"]


def load(server, streams, tokens, requests=None, words=8):
    """penstock-bench's report of `streams` clients that read SSE."""
    output = MODELS / "load.json"
    command = [BIN / "penstock-bench", "--url", server.url, "--concurrency", streams, "--no-progress"]
    command += ["--requests", requests or streams, "--max-new-tokens", tokens, "--prompt-words", words]
    subprocess.run([str(c) for c in [*command, "--output", output]], check=True)
    report = json.loads(output.read_text())
    if report["failures"]:
        raise RuntimeError(f"{report['failures']} requests failed: {report.get('first_error')}")
    return report


class Others:
    """The share of all processors' time that other processes took, between two moments. Children must have ended."""

    def __init__(self):
        self.begin = self._now()

    @staticmethod
    def _now():
        with open("/proc/stat") as file:
            user, nice, system, idle, wait, *interrupts = (int(n) for n in file.readline().split()[1:9])
        busy = user + nice + system + sum(interrupts)
        own = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")
        return busy + idle + wait, busy - own

    def share(self):
        total, others = (now - begin for now, begin in zip(self._now(), self.begin))
        return max(0.0, others / total) if total else 0.0


def median(values):
    return statistics.median(list(values))


def machine():
    return {**measure.describe_machine(), "system": platform.release(), "threads": THREADS}
