"""The measurements, in pieces of at most two and a half minutes each, and their goals."""

import json

import beside_busy
import predictions
import programs
import recipe_models
import serving
import start
from programs import LlamaSteps, ShardAlone, gguf, llama_batches, median

BATCHES = (1, 2, 4, 8, 16, 32)
CONTEXTS = (128, 1024, 4096)
PROMPTS = (32, 512, 2048)
LLAMA_TYPES = {"int8": "Q8_0", "int4": "Q4_0"}  # of the precisions
TURN_BATCHES = (1, 8, 32)
TURN_SECONDS = 0.5  # of decode steps: memory may be half as fast a second later


def precision_options(precision):
    return [] if precision == "bf16" else ["--quantize", precision]


def compare_decode(shape, precision, quick):
    """Decode of one sequence, alternating with llama.cpp every half second."""
    file = gguf(shape, LLAMA_TYPES.get(precision))
    ours, theirs, reads = [], [], []
    with ShardAlone(shape, *precision_options(precision)) as shard, LlamaSteps(file, 128) as llama:
        count = max(5, round(TURN_SECONDS / median(llama.steps(5))))
        sides = [(ours, lambda: shard.steps(1, 128, TURN_SECONDS)), (theirs, lambda: llama.steps(count))]
        for turn in range(6 if quick else 40):
            for rates, steps in sides[::-1] if turn % 2 else sides:
                rates.append(1 / median(steps()))
            reads.append(shard.read(1, 128))
    shares = [rate * read["step_bytes"] / read["gb_per_s"] / 1e9 for rate, read in zip(ours, reads)]
    theirs_of = [rate * llama_bytes(shape, file) / read["gb_per_s"] / 1e9 for rate, read in zip(theirs, reads)]
    bandwidth = {"share_of_bandwidth": median(shares), "read_gb_per_s": [read["gb_per_s"] for read in reads],
                 "llama_share_of_bandwidth": median(theirs_of)}
    return {"facts": shard.facts, **ratios(ours, theirs), **bandwidth}


def llama_bytes(shape, file):
    """What llama.cpp reads of a file in a step: about all but the share of the embedding, if that is not the head."""
    config = json.loads((programs.model(shape) / "config.json").read_text())
    if config.get("tie_word_embeddings"):
        return file.stat().st_size
    embedding = 2 * config["vocab_size"] * config["hidden_size"]
    return file.stat().st_size * (1 - embedding / gguf(shape).stat().st_size)


def compare_prefill(shape, precision, quick):
    """A prompt of 512 tokens, alternating with llama.cpp; the better of two each time."""
    file = gguf(shape, LLAMA_TYPES.get(precision))
    ours, theirs = [], []
    with ShardAlone(shape, *precision_options(precision)) as shard, LlamaSteps(file, 128) as llama:
        llama.prompts(512, 1)  # which reads the file's pages
        for _ in range(1 if quick else 5):
            ours.append(512 / min(shard.prompts(512)))
            theirs.append(512 / min(llama.prompts(512)))
        peaks = shard.peaks()
    return {"facts": shard.facts, **ratios(ours, theirs), "peaks": peaks}


def ratios(ours, theirs):
    """For rates measured alternately: the median of the pairs' ratios, and the ratio of the best."""
    turns = [our / their for our, their in zip(ours, theirs)]
    return {"penstock": ours, "llama.cpp": theirs, "turns": turns, "ratio": median(turns),
            "best_ratio": max(ours) / max(theirs)}


def grid(shape, precision, contexts, quick):
    """Decode of every batch at each context, and the roofline of the same seconds."""
    batches = (1, 8, 32) if quick else BATCHES
    pool = max(contexts) * 32 + 32 * 256
    with ShardAlone(shape, *precision_options(precision), pool_tokens=pool, max_length=max(contexts) + 512) as shard:
        peaks = shard.peaks()
        rows = [shard.decode(b, c, 1 if quick else 2) for c in contexts for b in batches]
    alone = {row["context"]: row["tokens_per_second"] for row in rows if row["rows"] == 1}
    for row in rows:
        row["times_own_one"] = row["tokens_per_second"] / alone[row["context"]]
    return {"facts": shard.facts, "peaks": peaks, "rows": rows}


def turns(shape, quick):
    """1, 8 and 32 sequences at 1k context, measured alternately. If the backend compresses weights, plain weights
    are measured as well. Results are by backend, the default one first."""
    size = {"pool_tokens": 1024 * 32 + 32 * 256, "max_length": 1536}
    with ShardAlone(shape, **size) as usual, ShardAlone(shape, "--cpu-weights", "plain", **size) as plain:
        shards = {shard.facts["backend"]: shard for shard in (plain, usual)}
        shards = {usual.facts["backend"]: usual, **shards}
        rounds = [turn(shards, number % 2 == 1) for number in range(2 if quick else 7)]
    ones = [taken[plain.facts["backend"]][0]["tokens_per_second"] for taken in rounds]
    return {"facts": usual.facts,
            "backends": {name: turn_rows([taken[name] for taken in rounds], ones) for name in shards}}


def beside_bfloat16(shape, precision, quick):
    """1 and 8 sequences, alternating with bfloat16 weights: ratios of tokens per second, and shares of the roofline."""
    rounds = {rows: [] for rows in (1, 8)}
    with ShardAlone(shape, *precision_options(precision)) as small, ShardAlone(shape) as plain:
        for number in range(2 if quick else 9):
            for rows, taken in rounds.items():
                sides = [small, plain][:: -1 if number % 2 else 1]
                steps = {side.facts["backend"]: side.decode(rows, 128, TURN_SECONDS) for side in sides}
                taken.append([steps[side.facts["backend"]] for side in (small, plain)])
    rows = [{"rows": batch, "times_bfloat16": median(a["tokens_per_second"] / b["tokens_per_second"] for a, b in taken),
             **{key: median(a[key] for a, _ in taken) for key in
                ("tokens_per_second", "share_of_bandwidth", "of_roofline", "read_gb_per_s")}}
            for batch, taken in rounds.items()]
    return {"facts": small.facts, "rows": rows}


def turn(shards, backwards):
    """{backend: results of each batch}"""
    taken = {name: [] for name in shards}
    for rows in TURN_BATCHES:
        for name in list(shards)[:: -1 if backwards else 1]:
            taken[name].append(shards[name].decode(rows, 1024))
    return taken


def turn_rows(rounds, ones_of_16_bits):
    """Medians of a backend's rounds."""
    rows = []
    for batch, taken in zip(TURN_BATCHES, zip(*rounds)):
        row = {"rows": batch, "context": 1024, "rounds": taken}
        for key in ("tokens_per_second", "of_roofline", "read_gb_per_s", "product_gflop_per_s", "register_gflop_per_s"):
            row[key] = median(step[key] for step in taken)
        speeds = [step["tokens_per_second"] for step in taken]
        row["times_own_one"] = median(speed / steps[0]["tokens_per_second"] for speed, steps in zip(speeds, rounds))
        row["times_one_of_16_bits"] = median(speed / one for speed, one in zip(speeds, ones_of_16_bits))
        row["times_own_one_of_rooflines"] = median(batch * steps[0]["roofline_ms"] / step["roofline_ms"]
                                                   for step, steps in zip(taken, rounds))
        rows.append(row)
    return rows


def prompts(shape, precision, quick):
    with ShardAlone(shape, *precision_options(precision)) as shard:
        return {"peaks": shard.peaks(), "rows": [shard.prefill(n, 0.5 if quick else 2) for n in PROMPTS]}


def beside_batched(shape, quick):
    """Batches of 8 and 32 at 1k context, alternating with llama.cpp's batched bench."""
    ours = {8: [], 32: []}
    theirs = {8: [], 32: []}
    with ShardAlone(shape, pool_tokens=32 * 1408, max_length=1536) as shard:
        for _ in range(1 if quick else 2):
            for rows in ours:
                ours[rows].append(shard.decode(rows, 1024, 2)["tokens_per_second"])
                theirs[rows].append(llama_batches(gguf(shape), [rows], 1024)[rows])
    return {str(rows): ratios(rates, theirs[rows]) for rows, rates in ours.items()}


def of_recipe(name, quick):
    """Decode of 1, 8 and 32 sequences in turns, each against the roofline of the same seconds."""
    with ShardAlone(recipe_models.model(name), pool_tokens=32 * 512, max_length=768) as shard:
        rounds = [[shard.decode(rows, 128) for rows in TURN_BATCHES] for _ in range(1 if quick else 5)]
    rows = []
    for taken in zip(*rounds):
        row = {"rows": taken[0]["rows"], "shares": sorted(step["of_roofline"] for step in taken)}
        for key in ("tokens_per_second", "of_roofline", "read_gb_per_s", "product_gflop_per_s"):
            row[key] = median(step[key] for step in taken)
        rows.append(row)
    return {"facts": shard.facts, "rows": rows}


def experts(quick):
    """Decode as above, and a prompt of 512 tokens in turns with the dense model of equal active size."""
    decode = of_recipe("experts-8-of-64", quick)
    ours, dense = [], []
    with ShardAlone(recipe_models.model("experts-8-of-64")) as sparse, \
            ShardAlone(recipe_models.model("dense-as-8-experts")) as whole:
        for _ in range(1 if quick else 7):
            ours.append(512 / min(sparse.prompts(512)))
            dense.append(512 / min(whole.prompts(512)))
    turns = [our / their for our, their in zip(ours, dense)]
    return {**decode, "prefill": {"experts": ours, "dense": dense, "turns": turns, "of_dense": median(turns)}}


def make_models(quick):
    del quick
    for shape in programs.TYPES:
        programs.model(shape)
    for shape in ("135m", "1.1b"):
        gguf(shape, "Q8_0")
    gguf("1.1b", "Q4_0")
    return {"shapes": list(programs.TYPES)}


# In order; each takes `quick`.
PIECES = {
    "models": make_models,
    "decode-1.1b-bf16": lambda quick: compare_decode("1.1b", "bf16", quick),
    "decode-135m-bf16": lambda quick: compare_decode("135m", "bf16", quick),
    "decode-0.5b-bf16": lambda quick: compare_decode("0.5b", "bf16", quick),
    "decode-1.1b-int8": lambda quick: compare_decode("1.1b", "int8", quick),
    "decode-1.1b-int4": lambda quick: compare_decode("1.1b", "int4", quick),
    "decode-135m-int8": lambda quick: compare_decode("135m", "int8", quick),
    "prefill-1.1b-bf16": lambda quick: compare_prefill("1.1b", "bf16", quick),
    "prefill-135m-bf16": lambda quick: compare_prefill("135m", "bf16", quick),
    "prefill-0.5b-bf16": lambda quick: compare_prefill("0.5b", "bf16", quick),
    "prefill-1.1b-int8": lambda quick: compare_prefill("1.1b", "int8", quick),
    "beside-bf16-1.1b-int4": lambda quick: beside_bfloat16("1.1b", "int4", quick),
    "turns-1.1b": lambda quick: turns("1.1b", quick),
    "batches-1.1b": lambda quick: grid("1.1b", "bf16", (128, 1024), quick),
    "batches-1.1b-4k": lambda quick: grid("1.1b", "bf16", (4096,), quick),
    "batches-1.1b-int8": lambda quick: grid("1.1b", "int8", (1024,), quick),
    "batches-0.5b": lambda quick: grid("0.5b", "bf16", CONTEXTS, quick),
    "batches-135m": lambda quick: grid("135m", "bf16", CONTEXTS, quick),
    "prompts-1.1b": lambda quick: prompts("1.1b", "bf16", quick),
    "prompts-0.5b": lambda quick: prompts("0.5b", "bf16", quick),
    "prompts-135m": lambda quick: prompts("135m", "bf16", quick),
    "prompts-1.1b-int8": lambda quick: prompts("1.1b", "int8", quick),
    "beside-batched-1.1b": lambda quick: beside_batched("1.1b", quick),
    "layers-experts-8-of-64": experts,
    "layers-delta-net": lambda quick: of_recipe("delta-net", quick),
    "http-135m": lambda quick: serving.through_http("135m", quick),
    "http-1.1b": lambda quick: serving.through_http("1.1b", quick),
    "users-135m": lambda quick: serving.users("135m", quick),
    "users-1.1b": lambda quick: serving.users("1.1b", quick),
    "tp2-beside-busy-demo": lambda quick: beside_busy.beside_busy("demo", 256, 20, quick),
    "tp2-beside-busy-0.5b": lambda quick: beside_busy.beside_busy("0.5b", 24, 3, quick),
    "start-1.1b": lambda quick: start.start("1.1b", quick),
    "stall-free-135m": lambda quick: serving.stall_free("135m", quick),
    "stall-free-135m-1-thread": lambda quick: serving.stall_free("135m", quick, "--cpu-threads", 1),
    "predictions-135m": lambda quick: predictions.predictions("135m", 64, 1536, quick),
    "predictions-1.1b": lambda quick: predictions.predictions("1.1b", 24, 512, quick),
}
QUICK = tuple(name for name in PIECES if name == "models" or ("135m" in name and "int" not in name))
