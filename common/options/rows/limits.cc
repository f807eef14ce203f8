#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "max-concurrent-requests",
     .type = Type::kInt,
     .default_text = "128",
     .min = 1,
     .max = 65536,
     .components = kLauncher | kRouter,
     .help = "Requests running and waiting at the same time; more are answered with 429."},
    {.name = "max-input-tokens",
     .type = Type::kInt,
     .min = 1,
     .max = 16777216,
     .components = kLauncher | kRouter,
     .aliases = "max-input-length",
     .help = "Longest prompt of a request. Unset: one less than --max-total-tokens."},
    {.name = "max-total-tokens",
     .type = Type::kInt,
     .min = 2,
     .max = 16777216,
     .components = kLauncher | kRouter,
     .aliases = "max-model-len",
     .help = "Longest prompt plus answer of a request. Unset: the model's context, if it fits "
             "into the KV cache."},
    {.name = "max-best-of",
     .type = Type::kInt,
     .default_text = "2",
     .min = 1,
     .max = 128,
     .components = kLauncher | kRouter,
     .help = "Most answers that one request may ask for with best_of or n."},
    {.name = "max-stop-sequences",
     .type = Type::kInt,
     .default_text = "4",
     .min = 0,
     .max = 1024,
     .components = kLauncher | kRouter,
     .help = "Most stop strings of a request."},
    {.name = "max-top-n-tokens",
     .type = Type::kInt,
     .default_text = "5",
     .min = 0,
     .max = 1000,
     .components = kLauncher | kRouter,
     .help = "Most alternatives per token that a request may ask for."},
    {.name = "max-client-batch-size",
     .type = Type::kInt,
     .default_text = "4",
     .min = 1,
     .max = 4096,
     .components = kLauncher | kRouter,
     .help = "Most inputs in one request where a route takes a list."},
    {.name = "disable-grammar-support",
     .type = Type::kBool,
     .default_text = "false",
     .components = kLauncher | kRouter,
     .help = "Refuse grammars and tools."},
    {.name = "seed",
     .type = Type::kInt,
     .default_text = "auto",
     .min = 0,
     .max = 9007199254740992,
     .allow_auto = true,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Seed of sampled requests that bring none; auto draws a new one for each."},
};

}  // namespace

std::span<const OptionSpec> LimitRows() { return kRows; }

}  // namespace penstock::options
