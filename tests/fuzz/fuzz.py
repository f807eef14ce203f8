#!/usr/bin/env python3
"""Runs the fuzz targets and adds what they did to one results file, over any number of runs.

Inputs that reach new code are kept in FOLDER/corpus, findings in FOLDER/findings. A finding repeats with
PENSTOCK_FUZZ_TARGET=TARGET build-fuzz/bin/penstock_fuzz FILE. The exit status is 1 if there is any.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SEEDS = ROOT / "tests" / "fuzz" / "corpus"
OPTIONS = [
    "-max_len=8192",
    "-timeout=10",  # of the clock; a unit above a second of it is kept as slow
    "-report_slow_units=1",
    "-rss_limit_mb=2048",
    "-malloc_limit_mb=1024",
    "-print_final_stats=1",
    "-detect_leaks=1",
]
ENVIRONMENT = {
    "ASAN_OPTIONS": "allocator_may_return_null=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
STATS = {
    "executions": r"stat::number_of_executed_units: (\d+)",
    "new_inputs": r"stat::new_units_added: +(\d+)",
    "peak_rss_mb": r"stat::peak_rss_mb: +(\d+)",
}


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_target(program, target, seconds, folder):
    """What one run did."""
    corpus, findings = folder / "corpus" / target, folder / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    log = folder / f"{target}.log"
    before = set(findings.iterdir())
    cpu = cpu_of_children()
    with open(log, "w") as out:
        done = subprocess.run(
            [program, corpus, SEEDS / target, f"-max_total_time={seconds}",
             f"-artifact_prefix={findings}/{target}-", *OPTIONS],
            stdout=out, stderr=subprocess.STDOUT, check=False,
            env={**os.environ, **ENVIRONMENT, "PENSTOCK_FUZZ_TARGET": target})
    text = log.read_text(errors="replace")
    result = {"cpu_seconds": round(cpu_of_children() - cpu, 1), "status": done.returncode}
    for name, pattern in STATS.items():
        found = re.search(pattern, text)
        result[name] = int(found.group(1)) if found else 0
    edges = re.findall(r" cov: (\d+)", text)
    result["edges"] = int(edges[-1]) if edges else 0
    result["findings"] = sorted(path.name for path in set(findings.iterdir()) - before)
    return result


def add(total, run, commit):
    for name in ("cpu_seconds", "executions", "new_inputs"):
        total[name] = round(total.get(name, 0) + run[name], 1)
    for name in ("peak_rss_mb", "edges"):
        total[name] = max(total.get(name, 0), run[name])
    total["runs"] = total.get("runs", 0) + 1
    total["findings"] = sorted({*total.get("findings", []), *run["findings"]})
    total["last"] = {"commit": commit, "time": time.strftime("%Y-%m-%d")}


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of each target (default: 60)")
    parser.add_argument("--target", action="append", help="only this one; may be repeated")
    parser.add_argument("--program", type=Path, default=ROOT / "build-fuzz" / "bin" / "penstock_fuzz")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz",
                        help="results.json, corpus, findings and logs (default: build/fuzz)")
    parser.add_argument("--summary", type=Path, metavar="FILE",
                        help="writes the sums of results.json there, for docs/promises.md; runs nothing")
    return parser.parse_args()


def summarize(totals, commit):
    """Findings that are mended are taken out of results.json by hand, with a seed and a unit test."""
    return {"targets": len(totals), "cpu_minutes": round(sum(t["cpu_seconds"] for t in totals.values()) / 60),
            "least_cpu_minutes": round(min(t["cpu_seconds"] for t in totals.values()) / 60, 1),
            "executions": sum(t["executions"] for t in totals.values()),
            "findings": sum(len(t["findings"]) for t in totals.values()), "commit": commit,
            "date": time.strftime("%Y-%m-%d"),
            "by_target": {name: {key: t[key] for key in ("cpu_seconds", "executions", "edges", "peak_rss_mb")}
                          for name, t in sorted(totals.items())}}


def main():
    options = read_options()
    results = options.folder / "results.json"
    options.folder.mkdir(parents=True, exist_ok=True)
    totals = json.loads(results.read_text()) if results.exists() else {}
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short=7", "HEAD"], check=False,
                            capture_output=True, text=True).stdout.strip()
    if options.summary:
        options.summary.write_text(json.dumps(summarize(totals, commit), indent=1) + "\n")
        return 0
    failed = 0
    for target in options.target or sorted(path.name for path in SEEDS.iterdir()):
        run = run_target(options.program, target, options.seconds, options.folder)
        add(totals.setdefault(target, {}), run, commit)
        results.write_text(json.dumps(totals, indent=1, sort_keys=True) + "\n")
        bad = bool(run["findings"]) or run["status"] != 0
        failed += bad
        print(f"{'FAIL' if bad else 'ok':4} {target}: {run['executions']} inputs, {run['edges']} edges, "
              f"{run['cpu_seconds']} s, peak {run['peak_rss_mb']} MB {' '.join(run['findings'])}", flush=True)
    minutes = sum(total["cpu_seconds"] for total in totals.values()) / 60
    print(f"{results}: {minutes:.0f} CPU-minutes of {len(totals)} targets over all runs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
