#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kSimulationRows[] = {
    OptionSpec("step-time", Duration(0, 3600), "0ms", "Time of every simulated step.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("token-time", Duration(0, 3600), "0ms",
               "Time of each row of a step, added to --step-time.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("step-time-model", Type::kString, "",
               "Machine whose step times are simulated: MACHINE-MODEL-tpN[-fp8][-generic], for "
               "example h100-llama-3-8b-tp1.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec(
        "time-scale", Float(0.001, 1000000), "1",
        "Factor on the time of every simulated step; above 1 a small machine can host many shards.",
        {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("blocks", Int(1, 16777216), "4096", "Blocks of the simulated KV cache.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("simulated-window", Int(1, 16777216), "",
               "Simulates layers with a window of this many tokens, beside layers without.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("window-blocks", Int(1, 16777216), "",
               "Blocks of the simulated layers with a window; unset: as many as --blocks.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec(
        "max-sequence-length", Int(1, 16777216), "",
        "Longest simulated sequence; unset: the context of --model-id, else the whole KV cache.",
        {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("vocab-size", Int(2, 16777216), "32000", "Size of the simulated vocabulary.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec(
        "tokens", OneOf("hash|echo"), "hash",
        "hash draws tokens from prompt, seed and position; echo repeats the prompt and ends.",
        {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("num-groups", Int(1, 64), "1",
               "Replica groups of --world-size ranks that this process hosts.",
               {.advanced = true, .components = kSimshard}),
    OptionSpec("faults", Type::kString, "",
               "Scripted faults, for example 'stall at=9 ms=300 group=1 rank=0; kill at=50', or "
               "@FILE (tools/simshard/fault_script.h).",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("fault-seed", Int(0, 9007199254740992), "0",
               "Seed that decides which steps a fault with a probability affects.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("fail-at-step", Int(1, 9007199254740992), "",
               "Exit with code 1 at this step, without a result.",
               {.advanced = true, .components = kLauncher | kSimshard}),
    OptionSpec("hang-at-step", Int(1, 9007199254740992), "",
               "Stop answering at this step, and stay alive.",
               {.advanced = true, .components = kLauncher | kSimshard}),
};

}  // namespace

std::span<const OptionSpec> SimulationRows() { return kSimulationRows; }

}  // namespace penstock::options
