#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

// effective-batching's names beside our own.
std::optional<std::string> CanonicalBatching(std::string_view text) {
  if (text == "nobatch") return "none";
  if (text == "dynamic") return "continuous";
  return std::string(text);
}

constexpr OptionSpec kSchedulingRows[] = {
    OptionSpec(
        "target-inter-token-ms", Float(0, 3600000), "0",
        "Longest step in milliseconds while requests decode; the cost model shortens prefill "
        "chunks to keep it; 0 is no limit."),
    OptionSpec("max-step-tokens", Int(1, 16777216), "auto",
               "Token budget of a step: decode rows plus prompt tokens; auto is 512 on CPU and "
               "2048 on CUDA.",
               {.allow_auto = true, .aliases = "max-num-batched-tokens"}),
    OptionSpec("max-batch-prefill-tokens", Int(1, 16777216), "",
               "Maximum number of prompt tokens of a step; unset: --max-step-tokens.",
               {.advanced = true}),
    OptionSpec("max-batch-total-tokens", Int(2, 4294967296), "",
               "Maximum number of tokens of running requests; unset: what the KV cache holds.",
               {.advanced = true}),
    OptionSpec("max-batch-size", Int(1, 65536), "",
               "Maximum number of requests in the running batch; unset: --max-concurrent-requests.",
               {.aliases = "max-num-seqs"}),
    OptionSpec("prefix-caching", Type::kBool, "true",
               "Reuse the KV blocks of prompts that start with the same tokens, within one tenant.",
               {.aliases = "enable-prefix-caching"}),
    OptionSpec("cached-prompts", Int(0, 4096), "10",
               "Maximum number of pinned prefixes (cached_prompt) of each replica group; the least "
               "recently used one is dropped.",
               {.advanced = true}),
    OptionSpec("cached-prompt-memory", Memory(0), "50%",
               "Largest part of the KV cache that pinned prefixes may take: bytes of all ranks "
               "together, or a share.",
               {.advanced = true}),
    OptionSpec("order", OneOf("fcfs|longest-prefix|priority|shortest-predicted|learned"), "fcfs",
               "Which waiting request is next: first come first served, longest cached prefix, "
               "highest request header X-Penstock-Priority, smallest X-Penstock-Predicted-Tokens, "
               "or least work as --rank-model predicts it."),
    OptionSpec("rank-model", Type::kPath, "",
               "With --order learned: file that predicts how long the answer to a prompt is, made "
               "by tools/rank; unset: only request header X-Penstock-Predicted-Tokens and the "
               "longest answer count."),
    OptionSpec("starvation-steps", Int(0, 1000000), "1000",
               "With --order learned: steps after which a waiting request is next; 0: never.",
               {.advanced = true}),
    OptionSpec("starvation-quantum", Int(1, 1000000), "10",
               "With --order learned: tokens after which a request that waited for "
               "--starvation-steps gives its place to the next such request.",
               {.advanced = true}),
    OptionSpec(
        "admission", OneOf("mixed|guaranteed|optimistic"), "mixed",
        "Memory that a request reserves: its worst case (guaranteed), or its expected output, with "
        "preemption when memory runs out (optimistic). mixed is guaranteed for requests that limit "
        "their output, else optimistic.",
        {.advanced = true}),
    OptionSpec(
        "speculate", Int(0, 15), "0",
        "Maximum number of draft tokens of a request per step, taken from repetitions in its "
        "own text; answers do not change."),
    OptionSpec("forced-tokens", Int(0, 15), "15",
               "Maximum number of tokens of a request per step that its grammar forces; 0 samples "
               "every token, in any spelling.",
               {.advanced = true}),
    OptionSpec("contrastive-search", Type::kBool, "false",
               "Offer contrastive search (penalty_alpha, top_k), which takes memory for one hidden "
               "state per token.",
               {.advanced = true, .components = kLauncher | kRouter | kShard}),
    OptionSpec("split", OneOf("cost|sparsity"), "cost",
               "How decode batches of the padded KV layout are split by length: cost takes the "
               "cheapest partition, sparsity the fewest sub-batches within --max-sparsity.",
               {.advanced = true}),
    OptionSpec("max-splits", Int(1, 64), "3",
               "Maximum number of sub-batches of a split decode batch.", {.advanced = true}),
    OptionSpec("max-sparsity", Float(0, 1), "0.33",
               "With --split sparsity: largest share of padding in all cells.", {.advanced = true}),
    OptionSpec("max-waiting-tokens", Int(0, 1000000), "20",
               "With --prefill whole: steps after which waiting requests join the running batch. "
               "Ignored with --prefill chunked.",
               {.advanced = true}),
    OptionSpec("waiting-served-ratio", Float(0, 1000), "0.3",
               "With --prefill whole: waiting requests join when they are at least this share of "
               "the running batch. Ignored with --prefill chunked.",
               {.advanced = true}),
    OptionSpec("batching", OneOf("none|static|continuous", CanonicalBatching), "continuous",
               "How the batch is formed: continuous admits requests at every step, static waits "
               "for the whole batch to end, none runs one request at a time.",
               {.advanced = true}),
    OptionSpec("static-grouping", OneOf("window|equal"), "window",
               "Requests that share a batch with --batching static: window takes all that wait, "
               "equal only those with equal prompt and output length.",
               {.advanced = true}),
    OptionSpec("prefill", OneOf("chunked|whole"), "chunked",
               "Whether a prompt may be computed in chunks over several steps.",
               {.advanced = true}),
    OptionSpec("placement", OneOf("prefix-match|least-loaded|round-robin"), "prefix-match",
               "Which replica group gets the next request: most cached prefix minus backlog, "
               "fewest running requests, or each in turn.",
               {.advanced = true}),
    OptionSpec(
        "placement-load-weight", Float(0, 1000), "0.25",
        "With --placement prefix-match: weight of a backlog token against a cached prompt token.",
        {.advanced = true,
         .no_effect = "the weight is fixed; the option goes with the next release"}),
    OptionSpec("max-overtakes", Int(1, 1000000000), "auto",
               "Maximum number of later requests that may overtake a waiting one.",
               {.allow_auto = true,
                .advanced = true,
                .no_effect =
                    "the bound is the length of the queue; the option goes with the next release"}),
    OptionSpec("pipeline-depth", Int(1, 4), "2",
               "Steps sent to the shards before the result of the first is back.",
               {.advanced = true,
                .no_effect = "two steps are in flight; the option goes with the next release"}),
};

}  // namespace

std::span<const OptionSpec> SchedulingRows() { return kSchedulingRows; }

}  // namespace penstock::options
