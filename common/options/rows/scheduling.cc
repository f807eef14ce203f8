#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

// effective-batching's names beside our own.
std::optional<std::string> CanonicalBatching(std::string_view text) {
  if (text == "nobatch") return "none";
  if (text == "dynamic") return "continuous";
  return std::string(text);
}

constexpr OptionSpec kRows[] = {
    {.name = "max-step-tokens",
     .type = Type::kInt,
     .default_text = "auto",
     .min = 1,
     .max = 16777216,
     .allow_auto = true,
     .components = kLauncher | kRouter,
     .aliases = "max-num-batched-tokens",
     .help = "Token budget of one step: decode rows plus prefill tokens. auto is 512 on CPU and "
             "2048 on CUDA; with --target-inter-token-ms it is 2048, and the target decides."},
    {.name = "target-inter-token-ms",
     .type = Type::kFloat,
     .default_text = "0",
     .min = 0,
     .max = 3600000,
     .components = kLauncher | kRouter,
     .help = "Longest step while requests stream, in milliseconds: a step takes only as many "
             "prompt tokens as the cost model says it can compute in this time. 0: no bound."},
    {.name = "split",
     .type = Type::kEnum,
     .default_text = "cost",
     .choices = "cost|sparsity",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "How decode batches are split by length where attention costs padded cells: cost "
             "takes the cheapest partition by measured times, sparsity the least parts that "
             "keep --max-sparsity."},
    {.name = "speculate",
     .type = Type::kInt,
     .default_text = "0",
     .min = 0,
     .max = 15,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Most tokens that a step guesses ahead for each request, from what followed in its "
             "own text before. With backend cpu answers keep their bits; text that repeats itself "
             "comes faster, while few requests run."},
    {.name = "max-splits",
     .type = Type::kInt,
     .default_text = "3",
     .min = 1,
     .max = 64,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Most parts of a split decode batch."},
    {.name = "max-sparsity",
     .type = Type::kFloat,
     .default_text = "0.33",
     .min = 0,
     .max = 1,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Share of padding in the cells of a split decode batch that --split sparsity "
             "tolerates."},
    {.name = "max-batch-prefill-tokens",
     .type = Type::kInt,
     .min = 1,
     .max = 16777216,
     .components = kLauncher | kRouter,
     .help = "Bound on the prefill tokens inside a step's budget. Unset: the budget."},
    {.name = "max-batch-total-tokens",
     .type = Type::kInt,
     .min = 2,
     .max = 4294967296,
     .components = kLauncher | kRouter,
     .help =
         "Bound on the tokens that running requests may hold, and on --max-total-tokens. Unset: "
         "what the KV cache holds."},
    {.name = "max-batch-size",
     .type = Type::kInt,
     .min = 1,
     .max = 65536,
     .components = kLauncher | kRouter,
     .aliases = "max-num-seqs",
     .help = "Most requests in the running batch. Unset: no bound of its own."},
    {.name = "max-waiting-tokens",
     .type = Type::kInt,
     .default_text = "20",
     .min = 0,
     .max = 1000000,
     .components = kLauncher | kRouter,
     .help = "With --prefill whole: after so many steps waiting requests join the running batch, "
             "however few they are. Ignored with chunked prefill, as TGI does."},
    {.name = "waiting-served-ratio",
     .type = Type::kFloat,
     .default_text = "0.3",
     .min = 0,
     .max = 1000,
     .components = kLauncher | kRouter,
     .help = "With --prefill whole: waiting requests join the running batch when they are at least "
             "this share of it. Ignored with chunked prefill, as TGI does."},
    {.name = "batching",
     .type = Type::kEnum,
     .default_text = "continuous",
     .choices = "none|static|continuous",
     .canonical = CanonicalBatching,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "How the batch is formed: continuous lets requests join and leave at every step, "
             "static starts the next batch when the whole one has ended, none runs one request "
             "after the other. dynamic and nobatch are other names of continuous and none."},
    {.name = "static-grouping",
     .type = Type::kEnum,
     .default_text = "window",
     .choices = "window|equal",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Who shares a batch with --batching static: window takes whoever waits, equal only "
             "requests with equal prompt and output length."},
    {.name = "prefill",
     .type = Type::kEnum,
     .default_text = "chunked",
     .choices = "chunked|whole",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Whether a prompt may be cut into chunks over several steps."},
    {.name = "admission",
     .type = Type::kEnum,
     .default_text = "mixed",
     .choices = "mixed|guaranteed|optimistic",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "guaranteed reserves the worst case of a request, which is then never evicted; "
             "optimistic reserves the expected output, so that more run together, and preempts who "
             "arrived last when the cache is full, at most 3 times; mixed is guaranteed for "
             "requests that say how long their answer may be, optimistic for the others."},
    {.name = "prefix-caching",
     .type = Type::kBool,
     .default_text = "true",
     .components = kLauncher | kRouter,
     .aliases = "enable-prefix-caching",
     .help = "Keep the KV blocks of ended requests and let prompts that begin alike share them, "
             "within one tenant. Off where the shards cannot share blocks."},
    {.name = "order",
     .type = Type::kEnum,
     .default_text = "fcfs",
     .choices = "fcfs|longest-prefix|priority|shortest-predicted",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Order of waiting requests: first come, first served; who finds most of its prompt in "
             "the prefix cache; greatest X-Penstock-Priority; smallest "
             "X-Penstock-Predicted-Tokens."},
    {.name = "placement",
     .type = Type::kEnum,
     .default_text = "prefix-match",
     .choices = "prefix-match|least-loaded|round-robin",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help =
         "Which replica group takes the next request: prefix-match weighs what it would have to "
         "compute of the prompt and its backlog; least-loaded takes the fewest running, "
         "round-robin one after the other. An idle group is never passed over."},
    {.name = "placement-load-weight",
     .type = Type::kFloat,
     .default_text = "0.25",
     .min = 0,
     .max = 1000,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "With --placement prefix-match: how much a prompt token of a group's backlog weighs "
             "against one that it need not compute."},
    {.name = "max-overtakes",
     .type = Type::kInt,
     .default_text = "auto",
     .min = 1,
     .max = 1000000000,
     .allow_auto = true,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "A waiting request is overtaken by at most so many later ones, then it goes first; "
             "auto is the length of the queue. Under fcfs nobody is overtaken."},
    {.name = "pipeline-depth",
     .type = Type::kInt,
     .default_text = "2",
     .min = 1,
     .max = 4,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Steps sent to the shards before the first one's result is back."},
};

}  // namespace

std::span<const OptionSpec> SchedulingRows() { return kRows; }

}  // namespace penstock::options
