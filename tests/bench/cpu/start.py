"""Cost of a start: time until weights and memory are ready, the warm-up, and peak memory."""

import re
import tempfile

from programs import MODELS, Server, load, model

KV_MIB = 240  # all of it is pre-faulted before the server is ready
SECONDS = 120


def highest(pid):
    """Peak memory of a process, in MiB."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024


def found(server, pattern):
    for line in server.lines:
        if match := re.search(pattern, line):
            return match
    raise RuntimeError(f"no line with {pattern!r}:\n{server.output()}")


def one_start(folder, background, *options):
    """`background` is the last line of background work after the start, if there is any."""
    with Server("--kv-cache-memory", f"{KV_MIB}MiB", "--max-total-tokens", 2048, *options, model=folder) as server:
        if background:
            server.wait_said(background, SECONDS)
        load(server, 8, 16, words=64)
        weights = found(server, r"weights: (\d+) MiB (read and packed|read) .*in ([\d.]+) s")
        allocated = found(server, r"KV cache: .* allocated in (\d+) ms")
        warm_up = found(server, r"warm-up: .* (\d+) ms")
        most = highest(server.pid_of("penstock-shard"))
        plan = found(server, r"memory plan of .*").group(0)
    mebibytes = int(weights.group(1))
    return {
        "how": weights.group(2).split()[-1],
        "weights_mib": mebibytes,
        "kv_mib": KV_MIB,
        "ready_memory_s": float(weights.group(3)) + int(allocated.group(1)) / 1000,
        "warm_up_s": int(warm_up.group(1)) / 1000,
        "peak_mib": most,
        "times_weights": (most - KV_MIB) / mebibytes,
        "plan": plan,
    }


def start(shape, quick, *options):
    """Starts without a weights cache, writing one, and reading one."""
    del quick
    folder = model(shape)
    with tempfile.TemporaryDirectory(dir=MODELS) as cache:
        kept = ("--weights-cache", cache, *options)
        return {
            "without": one_start(folder, None, *options),
            "writing": one_start(folder, "weights cache: .* written", *kept),
            "with": one_start(folder, "MiB read from", *kept),
        }
