"""Runs penstock-gpu-tests, each suite in its own process, because some device errors make a process unusable.

usage: gpu_tests.py tests|memcheck --bin FOLDER --out FOLDER

`memcheck` runs the kernels' suites under compute-sanitizer, which is looked for in PATH, beside CUDA toolkits and in
python3's packages. Writes tests.json or memcheck.json in FOLDER after each suite, a list of {test, outcome, seconds,
reason}. Exits with 0 unless something failed.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from http_check import has_gpu

SUITE_SECONDS = 150
MEMCHECK_SECONDS = 500  # of all suites together
KERNEL_SUITES = re.compile("Kernel|Attention")
RESULT = re.compile(r"^\[ +(RUN|OK|FAILED|SKIPPED) +\] ([\w./]+)(?:, where .*?)?(?: \((\d+) ms\))?$")
OUTCOMES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
SANITIZER_PLACES = [
    "/usr/local/cuda*/bin",
    "/usr/local/cuda*/compute-sanitizer",
    "/opt/nvidia/*/bin",
    "/opt/nvidia/*/*/bin",
    "/opt/cuda*/bin",
    "/usr/lib/nvidia-cuda-toolkit/compute-sanitizer",
]


def entry(test, outcome, reason="", seconds=0.0):
    return {"test": test, "outcome": outcome, "seconds": seconds, "reason": reason}


def read_output(text, ending):
    """Results of each test; one that began and did not end has failed by `ending`."""
    results, lines, begun = [], [], None
    for line in text.splitlines():
        found = RESULT.match(line)
        if found is None:
            lines.append(line.strip())
            continue
        state, test, milliseconds = found.groups()
        if state == "RUN":
            begun, lines = test, []
        elif test == begun:
            told = [x for x in lines if x] if state != "OK" else []
            reason = (told[-1] if state == "SKIPPED" else " ".join(told)[:600]) if told else ""
            results.append(entry(test, OUTCOMES[state], reason, int(milliseconds or 0) / 1000))
            begun = None
    if begun is not None:
        told = " ".join(x for x in lines if x)[-400:]
        results.append(entry(begun, "failed", f"{ending}. {told}".strip()))
    return results


def run_suite(command, log, seconds):
    """Standard output and how it ended."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
        output, ending = done.stdout, f"the program ended with {done.returncode}"
    except subprocess.TimeoutExpired as late:
        output, ending = late.stdout or b"", f"not done after {seconds:.0f} s"
    text = output.decode(errors="replace")
    with open(log, "a") as file:
        file.write(text)
    return text, ending


def list_suites(program):
    """Suites and their tests; or why the program cannot start."""
    done = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return read_list(done.stdout), ""


def read_list(text):
    suites = {}
    for line in text.splitlines():
        name = line.split("#")[0].rstrip()
        if name and not name.startswith(" "):
            suite = suites.setdefault(name, [])
        elif name:
            suite.append(name.strip())
    return {name: tests for name, tests in suites.items() if name.endswith(".")}


def skipped_by_name(reason):
    """The names come from the list that the bundle was made with."""
    path = Path(__file__).parent / "tests.txt"
    suites = read_list(path.read_text()) if path.exists() else {"GpuTests.": ["all"]}
    return [entry(suite + test, "skipped", reason) for suite, tests in suites.items() for test in tests]


def run_tests(program, out, write):
    suites, reason = list_suites(program)
    if suites is None:
        return write(skipped_by_name(reason))
    results = []
    for name in suites if has_gpu() else [""]:
        command = [program, f"--gtest_filter={name}*"]
        text, ending = run_suite(command, out / "gpu-tests.log", SUITE_SECONDS)
        found = read_output(text, ending)
        results += found or [entry(f"{name}all", "failed", ending)]
        write(results)


def find_sanitizer():
    places = [sysconfig.get_paths()["purelib"] + "/nvidia/*/bin"] + SANITIZER_PLACES
    cuda_home = os.environ.get("CUDA_HOME")
    folders = [f"{cuda_home}/bin"] if cuda_home else []
    for place in places:
        folders += sorted(glob.glob(place), reverse=True)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=":".join(folders))


def run_memcheck(program, out, write):
    sanitizer = find_sanitizer()
    reason = "" if has_gpu() else "this machine shows no NVIDIA GPU"
    if not reason and sanitizer is None:
        reason = "compute-sanitizer is not installed (package nvidia-cuda-sanitizer-api or a CUDA toolkit)"
    suites, cannot_start = list_suites(program)
    reason = reason or cannot_start
    if reason:
        return write([entry("Memcheck.kernels", "skipped", reason)])
    results, end = [], time.monotonic() + MEMCHECK_SECONDS
    for name in filter(KERNEL_SUITES.search, suites):
        # A program that is a script finds the libraries for what it runs.
        command = [sanitizer, "--tool", "memcheck", "--target-processes", "all", "--error-exitcode", "99"]
        command += [program, f"--gtest_filter={name}*"]
        begin = time.monotonic()
        text, ending = run_suite(command, out / "memcheck-output.log", max(1, end - begin))
        clean = "ERROR SUMMARY: 0 errors" in text and ending.endswith(" 0")
        late = ending.startswith("not done")
        told = "" if clean else next((x for x in text.splitlines() if "Invalid" in x), ending)
        outcome = "passed" if clean else "skipped" if late else "failed"
        results.append(entry(f"Memcheck.{name}all", outcome, told, time.monotonic() - begin))
        write(results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("piece", choices=["tests", "memcheck"])
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    path = args.out / f"{args.piece}.json"

    def write(results):
        path.write_text(json.dumps(results, indent=1) + "\n")

    run = {"tests": run_tests, "memcheck": run_memcheck}[args.piece]
    run(args.bin / "penstock-gpu-tests", args.out, write)
    return 1 if any(r["outcome"] == "failed" for r in json.loads(path.read_text())) else 0


if __name__ == "__main__":
    sys.exit(main())
