"""Goals and tables of what cpu_claims.py measured."""

from statistics import median

import serving
from programs import REPOSITORY

DOCUMENT = REPOSITORY / "docs/benchmarks/cpu.md"
HEAD = "# The CPU shard\n\nMade by `make bench-cpu ARGS=--write`. Do not edit."
PICTURE = REPOSITORY / "docs/images/cpu-users.svg"


def goal(what, value, limit, unit="x"):
    return {"what": what, "value": value, "unit": unit, "goal": limit, "ok": value >= limit}


def compare_goals(results):
    for piece, least in (
        ("decode-1.1b-bf16", 1.10),
        ("decode-135m-bf16", 1.0),
        ("decode-1.1b-int8", 1.10),
        ("prefill-1.1b-bf16", 3.0),
    ):
        if "ratio" in results.get(piece, {}):
            yield goal(f"{piece.replace('-', ', ', 1)} / llama.cpp", results[piece]["ratio"], least)


def at_most(what, value, limit, unit="x"):
    return {"what": what, "value": value, "unit": unit, "goal": -limit, "ok": value <= limit}


def batch_goals(results):
    """Goals of batches for each weight format (docs/decisions/0038)."""
    for backend, rows in results.get("turns-1.1b", {}).get("backends", {}).items():
        for row in rows[1:]:
            name = f"1.1b, {row['rows']} sequences at 1k context, {backend}"
            yield goal(f"{name}: of the roofline", row["of_roofline"] * 100, 85, "%")
            if row["read_gb_per_s"] <= 35:
                yield goal(f"{name}: own B = 1", row["times_own_one"], {8: 6, 32: 10}[row["rows"]])


def small_weight_goals(results):
    """Goals of int4 (docs/decisions/0053)."""
    name = "1.1b, int4"
    if "turns" in results.get("decode-1.1b-int4", {}):
        result = results["decode-1.1b-int4"]
        yield goal(f"{name}, B = 1: of the bandwidth", result["share_of_bandwidth"] * 100, 75, "%")
        share = result["llama_share_of_bandwidth"]
        yield goal(f"{name}, B = 1 / llama.cpp's Q4_0", result["ratio"], 0.95 if share > 0.7 else 1.4)
    for row in results.get("beside-bf16-1.1b-int4", {}).get("rows", []):
        if row["rows"] == 8:
            yield goal(f"{name}, B = 8 / bfloat16", row["times_bfloat16"], 1.3)


def layer_goals(results):
    for name, result in pieces(results, "layers-", "rows"):
        least = 75 if "experts" in name else 70
        for row in result["rows"]:
            yield goal(f"{name}, {row['rows']} sequences: of the roofline", row["of_roofline"] * 100, least, "%")
        if "prefill" in result:
            yield goal(f"{name}: prompt of 512 / the dense model", result["prefill"]["of_dense"], 0.6)


def serving_goals(results):
    for shape in ("135m", "1.1b"):
        if "ratio" in results.get(f"http-{shape}", {}):
            share = results[f"http-{shape}"]["ratio"] * 100
            yield goal(f"{shape}: HTTP, SSE, 8 streams / shard alone", share, 93, "%")
        if "rows" in results.get(f"users-{shape}", {}):
            most = results[f"users-{shape}"]["most_users_within_twice"]
            yield goal(f"{shape}: users within twice the latency of one", most, 10, "users")


def stall_goals(results):
    for name, result in pieces(results, "stall-free-", "budget"):
        yield at_most(f"{name}: longest gap / decode step, with a budget", result["budget"]["gap_ratio"], 2.5)
        yield goal(f"{name}: the same with whole prompts", result["whole"]["gap_ratio"], 5)


def busy_goals(results):
    for name, result in pieces(results, "tp2-beside-busy-", "rows"):
        for row in result["rows"]:
            what = f"{name}, two ranks beside a busy process, B = {row['streams']}"
            yield at_most(f"{what}: time per token, times quiet", row["times_mean"], 3)
            yield at_most(f"{what}: worst gap / quiet step", row["worst_of_all"], 100)
        yield at_most(f"{name}, two ranks: idle, of a processor", result["idle_share"] * 100, 1, "%")


def start_goals(results):
    for name, result in pieces(results, "start-", "without"):
        yield at_most(f"{name}: weights and KV cache in memory", result["without"]["ready_memory_s"], 6, "s")
        yield at_most(f"{name}: the same with --weights-cache", result["with"]["ready_memory_s"], 2.5, "s")
        yield at_most(f"{name}: first warm-up", result["without"]["warm_up_s"], 20, "s")
        highest = max(run["times_weights"] for run in (result["without"], result["writing"], result["with"]))
        yield at_most(f"{name}: peak memory but for the KV cache / weights", highest, 1.15)


def prediction_goals(results):
    for name, result in pieces(results, "predictions-", "errors"):
        error = result["errors"]["all steps"]["median"]
        yield at_most(f"{name}: median error of the cost model", error * 100, 15, "%")


def goals(results):
    makers = (compare_goals, small_weight_goals, batch_goals, layer_goals, serving_goals, stall_goals,
              busy_goals, start_goals, prediction_goals)
    return [entry for make in makers for entry in make(results)]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def number(value, digits=3):
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"


def goal_table(results):
    rows = []
    for entry in goals(results):
        limit = entry["goal"]
        wanted = f">= {limit:g}" if limit > 0 else f"<= {-limit:g}"
        value = f"{number(entry['value'])} {entry['unit']}"
        rows.append((entry["what"], value, wanted, "yes" if entry["ok"] else "**no**"))
    return table(("Goal", "Measured", "Wanted", ""), rows)


def pieces(results, prefix, key):
    return [(n.removeprefix(prefix), r) for n, r in results.items() if n.startswith(prefix) and key in r]


def compare_table(results):
    rows = []
    for what in ("decode", "prefill"):
        for name, result in pieces(results, f"{what}-", "ratio"):
            sides = (sorted(result[program]) for program in ("penstock", "llama.cpp"))
            rates = (f"{number(s[len(s) // 2])} ({number(s[-1])})" for s in sides)
            share = f"{result['share_of_bandwidth'] * 100:.0f} %" if "share_of_bandwidth" in result else ""
            turns = sorted(result["turns"])
            halves = f"{turns[len(turns) // 4]:.2f} to {turns[len(turns) * 3 // 4]:.2f}"
            rows.append((what, name, *rates, f"{result['ratio']:.2f}", halves, f"{result['best_ratio']:.2f}", share))
    head = ("", "Model", "Penstock, tokens/s (best)", "llama.cpp", "ratio in turns", "half of the turns", "of bests",
            "of read bandwidth")
    return table(head, rows)


def batch_table(results):
    rows = []
    for name, result in pieces(results, "batches-", "rows"):
        for row in result["rows"]:
            keys = ("tokens_per_second", "read_gb_per_s", "product_gflop_per_s", "register_gflop_per_s")
            measured = (number(row.get(key, 0)) for key in keys)
            rows.append((name.removesuffix("-4k"), row["context"], row["rows"], *measured,
                         f"{row['times_own_one']:.2f}", f"{row['of_roofline'] * 100:.0f} %"))
    head = ("Model", "context", "B", "tokens/s", "read GB/s", "GEMM GFLOP/s", "registers", "own B = 1", "of roofline")
    return table(head, rows)


def turns_table(results):
    rows = []
    for name, result in pieces(results, "turns-", "backends"):
        for backend, measured in result["backends"].items():
            for row in measured:
                shares = sorted(step["of_roofline"] * 100 for step in row["rounds"])
                multiples = (row["times_own_one"], row["times_own_one_of_rooflines"], row["times_one_of_16_bits"])
                rows.append((name, backend, row["rows"], number(row["read_gb_per_s"]), number(row["tokens_per_second"]),
                             *(f"{multiple:.2f}" for multiple in multiples), f"{row['of_roofline'] * 100:.0f} %",
                             f"{shares[0]:.0f} to {shares[-1]:.0f} %"))
    head = ("Model", "backend", "B", "read GB/s", "tokens/s", "own B = 1", "of rooflines", "B = 1 with 16 bits",
            "of roofline", "of all rounds")
    return table(head, rows)


def layer_table(results):
    rows = []
    for name, result in pieces(results, "layers-", "rows"):
        for row in result["rows"]:
            shares = f"{row['shares'][0] * 100:.0f} to {row['shares'][-1] * 100:.0f} %"
            rows.append((name, f"decode, B = {row['rows']}", number(row["tokens_per_second"]),
                         number(row["read_gb_per_s"]), f"{row['of_roofline'] * 100:.0f} %", shares))
        if "prefill" in result:
            turns = sorted(result["prefill"]["turns"])
            rows.append((name, "prompt of 512 / the dense model", number(median(result["prefill"]["experts"])), "",
                         f"{result['prefill']['of_dense']:.2f}", f"{turns[0]:.2f} to {turns[-1]:.2f}"))
    return table(("Model", "", "tokens/s", "read GB/s", "of roofline, or ratio", "all rounds"), rows)


def prompt_table(results):
    rows = [
        (name, row["rows"], number(row["tokens_per_second"]), number(row["step_ms"]),
         f"{row['of_roofline'] * 100:.0f} %")
        for name, result in pieces(results, "prompts-", "rows")
        for row in result["rows"]
    ]
    return table(("Model", "prompt", "tokens/s", "ms", "of roofline"), rows)


def beside_table(results):
    rows = []
    for name, result in pieces(results, "beside-batched-", "8"):
        for count in ("8", "32"):
            side = result[count]
            best = (number(max(side[program])) for program in ("penstock", "llama.cpp"))
            rows.append((name, count, *best, f"{side['ratio']:.2f}"))
    return table(("Model", "B", "Penstock, tokens/s", "llama-batched-bench", "ratio"), rows)


def http_table(results):
    rows = []
    for name, r in pieces(results, "http-", "ratio"):
        alone, http = r["alone_tokens_per_second"], r["http_tokens_per_second"]
        turns = [100 * h / a for a, h in zip(alone, http)]
        rows.append((name, number(median(alone)), number(median(http)), f"{r['ratio'] * 100:.1f} %",
                     f"{min(turns):.0f} to {max(turns):.0f} %"))
    return table(("Model", "shard alone, tokens/s", "through HTTP and SSE", "ratio of medians", "turns"), rows)


def users_table(results):
    found = pieces(results, "users-", "rows")
    rows = [
        (name, row["users"], number(row["ms_per_token"]), f"{row['times_one_user']:.2f}", number(row["p99_ms"]),
         number(row["ttft_p50_ms"]), number(row["tokens_per_second"]))
        for name, result in found
        for row in result["rows"]
    ]
    return table(("Model", "users", "ms per token", "of one user's", "p99", "first token, ms", "tokens/s of all"), rows)


def busy_table(results):
    rows = []
    for name, result in pieces(results, "tp2-beside-busy-", "rows"):
        for row in result["rows"]:
            sides = (sorted(turn[key] for turn in row[side]) for key in ("p50_ms", "worst_ms")
                     for side in ("quiet", "busy"))
            cells = (f"{number(median(side))} ({number(side[-1])})" for side in sides)
            rows.append((name, row["streams"], *cells, f"{row['times_p50']:.2f}", f"{row['times_mean']:.2f}",
                         f"{row['worst_of_all']:.0f}", f"{result['idle_share'] * 100:.2f} %"))
    head = ("Model", "streams", "gap, ms (highest turn)", "busy", "worst gap, ms (highest turn)", "busy",
            "of medians", "of means", "worst busy gap / quiet step", "idle ranks")
    return table(head, rows)


def start_table(results):
    rows = [
        (name, kind, run["how"], run["weights_mib"], f"{run['ready_memory_s']:.2f}", number(run["warm_up_s"]),
         number(run["peak_mib"]), f"{run['times_weights']:.3f}")
        for name, result in pieces(results, "start-", "without")
        for kind, run in result.items() if isinstance(run, dict) and "how" in run
    ]
    head = ("Model", "weights cache", "weights are", "MiB", "in memory after, s", "warm-up, s", "peak RSS, MiB",
            "less KV cache / weights")
    return table(head, rows)


def stall_table(results):
    rows = []
    for name, result in pieces(results, "stall-free-", "budget"):
        for kind in ("budget", "whole"):
            run = result[kind]
            what = f"target {result['target_inter_token_ms']} ms" if kind == "budget" else "whole prompts"
            all_rounds = ", ".join(f"{r['gap_ratio']:.2f}" for r in run["rounds"])
            rows.append((name, what, number(run["decode_step_ms"]), number(run["longest_decode_gap_ms"]),
                         number(run["p99_gap_ms"]), number(run["longest_gap_ms"]), f"{run['gap_ratio']:.2f}",
                         all_rounds, number(run["ttft_ms"])))
    return table(("Model", "", "decode step, ms", "longest of decodes alone", "beside the prompt: p99", "longest",
                  "longest / decode step", "of all rounds", "first token of the prompt, ms"), rows)


def prediction_table(results):
    rows = [
        (name, kind, error["steps"], f"{error['median'] * 100:.1f} %", f"{error['p90'] * 100:.0f} %")
        for name, result in pieces(results, "predictions-", "errors")
        for kind, error in result["errors"].items()
    ]
    return table(("Model", "steps", "number", "median error", "90 % below"), rows)


SECTIONS = (
    ("Goals", goal_table),
    ("One sequence, and a prompt of 512, beside llama.cpp", compare_table),
    ("Batches at 1k context in turns, medians", turns_table),
    ("Batches that decode", batch_table),
    ("Batches at 1k context beside llama.cpp", beside_table),
    ("Experts and gated delta nets at a context of 128", layer_table),
    ("Prompts", prompt_table),
    ("Through HTTP and SSE, 8 streams", http_table),
    ("Users against latency", users_table),
    ("Two ranks on two cores beside a process that computes without pause", busy_table),
    ("Start, with a KV cache of 240 MiB", start_table),
    ("A prompt of 2,048 tokens beside 16 streams", stall_table),
    ("Steps as the cost model predicts them", prediction_table),
)


def bullets(title, entries):
    return "\n".join([title, "", *(f"* {entry}" for entry in entries)])


def document(results):
    measured = sorted(r["measured"] for r in results.values())
    machine = list(results.values())[-1]["machine"]
    parts = [HEAD, f"Measured {measured[0]} to {measured[-1]} on {machine['cpu']}, {machine['cores']} cores."]
    parts.append(bullets("Commits:", sorted({r["machine"]["commit"] for r in results.values()})))
    for title, make in SECTIONS:
        text = make(results)
        if text.count("\n") > 1:
            parts.append(f"## {title}\n\n{text}")
            if make is users_table:
                parts.append(f"![latency and throughput against users](../images/{PICTURE.name})")
    shares = [(name, result.get("others_share", 0)) for name, result in results.items()]
    disturbed = [f"{name}: {share * 100:.0f} %" for name, share in shares if share > 0.03]
    if disturbed:
        parts.append(bullets("Share of the processor time that other processes took:", disturbed))
    skipped = [f"{name}: {r['skipped']}" for name, r in results.items() if "skipped" in r]
    if skipped:
        parts.append(bullets("Not measured:", skipped))
    return "\n\n".join(parts)


def write(results):
    users = dict(pieces(results, "users-", "rows"))
    if users:
        PICTURE.write_text(serving.draw_users(users))
    DOCUMENT.write_text(document(results) + "\n")
