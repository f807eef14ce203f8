"""The acceptance tests: each returns rows (what, value, unit, pass condition, passed)."""

import json
import subprocess
import sys

from ranking import learned_ranking
from replay import REPOSITORY, TRACES, program, replay, row


def iteration_level():
    """Orca: highest Poisson rate at which the median latency per token is at most twice the unloaded one."""
    unloaded = replay("trace", "uniform", requests=400, rate=0.05)["normalised_ms"]["p50"]
    objective = {"slo_normalised": f"{2 * unloaded}ms", "attainment": 0.5, "max_rate": 400}
    ours = replay("search", "uniform", requests=6000, **objective)["rate"]
    static = {"batching": "static", "padded": True, "pipeline_depth": 1, "max_step_tokens": 65536}
    baseline = max(
        replay("search", "uniform", requests=3000, max_batch_size=size, **static, **objective)["rate"]
        for size in (1, 2, 4, 8, 16, 32, 64)
    )
    return [
        row("continuous batching", ours, "req/s", ">= 75", ours >= 75),
        row("best request-level batcher, sizes 1 to 64", baseline, "req/s", "", True),
        row("ratio", ours / baseline, "x", ">= 20", ours / baseline >= 20),
    ]


def stall_free():
    """Sarathi-Serve through HTTP: 32 decodes at 1k context, then a prompt of 4,096 tokens, budget 512."""
    script = [sys.executable, REPOSITORY / "tests/bench/stall_free.py"]
    done = subprocess.run(script, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout)
    gap, whole, ttft = result["chunked"]["gap_ratio"], result["whole"]["gap_ratio"], result["ttft_ratio"]
    return [
        row("longest gap / decode-only step", gap, "x", "<= 2.3", gap <= 2.3),
        row("the same with whole prompts", whole, "x", ">= 9", whole >= 9),
        row("TTFT of the prompt / with whole prompts", ttft, "x", "<= 1.5", ttft <= 1.5),
    ]


def goodput():
    """Sarathi-Serve: Azure conversation lengths on 4 groups, TTFT <= 0.4 s and worst gap <= 30 ms for 90 %."""
    trace = TRACES / "azure2023_conv.csv"
    objective = {"slo_ttft": "400ms", "slo_gap": "30ms"}
    ours = {"num_replicas": 4, "max_step_tokens": 2048, "target_inter_token_ms": 29}
    load = {"requests": 19366, "min_rate": 40, "max_rate": 120, "precision": 0.02}
    rate = replay("search", trace, **ours, **objective, **load)["rate"] / 4
    met = replay("trace", trace, rate=68, requests=19366, **ours, **objective)["attainment"]
    whole = {"prefill": "whole", "max_step_tokens": 16384, "requests": 1000, "max_rate": 20}
    baseline = replay("search", trace, precision=0.05, **whole, **objective)["rate"]
    return [
        row("goodput per shard, budget from the target", rate, "req/s", ">= 17", rate >= 17),
        row("requests within the objective at 17 req/s", 100 * met, "%", ">= 90", met >= 0.9),
        row("goodput per shard with whole prompts", baseline, "req/s", "< 1", baseline < 1),
    ]


def radix_offline():
    """SGLang: the whole Mooncake conversation trace queued at once, cache of 247 blocks, hits of 288,500 look-ups."""
    trace = TRACES / "mooncake_conversation_trace.jsonl"
    block = 16  # an id is one full block, whatever its size
    cell = {
        "whole_blocks": block,
        "block_size": block,
        "blocks": 248,  # 247 and the block of the last, unshared token
        "max_output": 1,
        "time_scale": 0,
        "max_batch_size": 1,
        "pipeline_depth": 1,
        "max_step_tokens": 8192,
    }
    hits = {}
    for order in ("longest-prefix", "fcfs"):
        result = replay("trace", trace, order=order, **cell)
        hits[order] = result["cached_tokens"] // block
    share = 100 * hits["fcfs"] / 288500
    best = hits["longest-prefix"]
    return [
        row("hits, longest-prefix", best, "blocks", "= 105,710", best == 105710),
        row("hits, fcfs", share, "%", "about 4.2", 4.0 <= share <= 4.4),
    ]


def routing_online():
    """Mooncake/Dynamo: the conversation trace in order of arrival on 16 groups of 850 blocks of 512 tokens."""
    trace = TRACES / "mooncake_conversation_trace.jsonl"
    fleet = {"num_replicas": 16, "blocks": 850, "block_size": 512, "max_step_tokens": 8192}
    rows = []
    for placement in ("prefix-match", "round-robin", "least-loaded"):
        # The reference counts prompts alone: outputs of one token.
        result = replay("trace", trace, placement=placement, max_output=1, **fleet)
        hit, balance = 100 * result["hit_rate"], result["imbalance"]
        ours = placement == "prefix-match"
        rows.append(row(f"hits, {placement}", hit, "%", ">= 21" if ours else "", not ours or hit >= 21))
        bound = "<= 1.05" if ours else ""
        rows.append(
            row(f"most / mean uncached work, {placement}", balance, "x", bound, not ours or balance <= 1.05)
        )
    full = replay("trace", trace, **fleet)
    return rows + [row("hits, prefix-match, outputs in full length", 100 * full["hit_rate"], "%", "", True)]


def router_cost():
    """Dynamo: prefix index and route decision on one core, 64 groups, replayed trace, blocks of 512 tokens."""
    result = program("penstock-core-bench", TRACES / "mooncake_conversation_trace.jsonl")
    rate = result["index_512"]["block_operations_per_second"]
    rows = [row("block operations", rate / 1e6, "M/s", ">= 1", rate >= 1e6)]
    if "route_64_groups" in result:
        p99 = result["route_64_groups"]["p99_us"]
        rows.append(row("route decision, 64 groups, p99", p99, "us", "< 1000", p99 < 1000))
    step = result["step_256_running_4096_queued"]
    return rows + [
        row("step, 256 running, 4,096 queued", step["p50_us"], "us", "<= 20", step["p50_us"] <= 20),
        row("allocations per step", step["allocations_per_step"], "", "0", step["allocations_per_step"] == 0),
    ]


CASES = {
    1: iteration_level,
    2: stall_free,
    3: goodput,
    4: radix_offline,
    5: routing_online,
    8: learned_ranking,
    10: router_cost,
}
