#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kLimitRows[] = {
    OptionSpec("max-concurrent-requests", Int(1, 65536), "128",
               "Maximum number of running and waiting requests; a further one gets status 429."),
    OptionSpec(
        "max-queue-wait", Duration(0, 86400), "0",
        "Refuse a request with status 429 if it would wait longer than this before it starts, "
        "by the recent pace; 0 is no limit."),
    OptionSpec(
        "max-request-cost", Int(0, 9007199254740992), "16777216",
        "Most that one request may cost: tokens of all its answers, alternatives, stop strings "
        "and grammars, in tokens; 0 is no limit.",
        {.advanced = true}),
    OptionSpec("max-input-tokens", Int(1, 16777216), "",
               "Longest prompt; unset: one token less than --max-total-tokens.",
               {.aliases = "max-input-length"}),
    OptionSpec(
        "max-total-tokens", Int(2, 16777216), "",
        "Longest prompt plus output; unset: the model's context, if it fits into the KV cache.",
        {.aliases = "max-model-len"}),
    OptionSpec("max-best-of", Int(1, 128), "2",
               "Maximum number of answers that one request may ask for with best_of or n.",
               {.advanced = true}),
    OptionSpec("max-stop-sequences", Int(0, 1024), "4",
               "Maximum number of stop strings of a request. OpenAI's routes take 16, except with "
               "--api-profile tgi.",
               {.advanced = true}),
    OptionSpec("max-top-n-tokens", Int(0, 1000), "5",
               "Maximum number of alternatives per token that a request may ask for. OpenAI's "
               "routes take 20, except with --api-profile tgi.",
               {.advanced = true}),
    OptionSpec(
        "max-candidates", Int(2, 4096), "64",
        "Maximum number of candidates (top_k) of a contrastive search; each takes a row of a "
        "step.",
        {.advanced = true}),
    OptionSpec("max-client-batch-size", Int(1, 4096), "4",
               "Maximum number of inputs of one request on a route that takes a list.",
               {.advanced = true}),
    OptionSpec("max-embed-batch-size", Int(1, 65536), "2048",
               "Maximum number of texts of one request for embeddings, scores or classes.",
               {.advanced = true}),
    OptionSpec("disable-grammar-support", Type::kBool, "false", "Refuse grammars and tools.",
               {.advanced = true, .components = kLauncher | kRouter | kShard}),
    OptionSpec("watermark-gamma", Float(0.01, 0.99), "0.5",
               "Share of the vocabulary that `watermark: true` favours.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("watermark-delta", Float(0, 100), "2.0",
               "Number that `watermark: true` adds to the logits of that share.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("seed", Int(0, 9007199254740992), "auto",
               "Seed for sampled requests without a seed; auto draws one for each request.",
               {.allow_auto = true, .advanced = true}),
};

}  // namespace

std::span<const OptionSpec> LimitRows() { return kLimitRows; }

}  // namespace penstock::options
