#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "step-time",
     .type = Type::kDuration,
     .default_text = "0ms",
     .min = 0,
     .max = 3600,
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "Time that every step takes."},
    {.name = "token-time",
     .type = Type::kDuration,
     .default_text = "0ms",
     .min = 0,
     .max = 3600,
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "Time that each row of a step takes beside --step-time."},
    {.name = "blocks",
     .type = Type::kInt,
     .default_text = "4096",
     .min = 1,
     .max = 16777216,
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "Blocks of the simulated KV cache."},
    {.name = "max-sequence-length",
     .type = Type::kInt,
     .min = 1,
     .max = 16777216,
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "Longest simulated sequence. Unset: the context of --model-id, else the whole cache."},
    {.name = "vocab-size",
     .type = Type::kInt,
     .default_text = "32000",
     .min = 2,
     .max = 16777216,
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "Size of the vocabulary that tokens are drawn from."},
    {.name = "tokens",
     .type = Type::kEnum,
     .default_text = "hash",
     .choices = "hash|echo",
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "hash draws tokens from (prompt, seed, position); echo repeats the prompt, then "
             "ends."},
    {.name = "fail-at-step",
     .type = Type::kInt,
     .min = 1,
     .max = 9007199254740992,
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "Exit with code 1 at this step, without an answer."},
    {.name = "hang-at-step",
     .type = Type::kInt,
     .min = 1,
     .max = 9007199254740992,
     .advanced = true,
     .components = kLauncher | kSimshard,
     .help = "Stop answering at this step, and stay alive."},
};

}  // namespace

std::span<const OptionSpec> SimulationRows() { return kRows; }

}  // namespace penstock::options
