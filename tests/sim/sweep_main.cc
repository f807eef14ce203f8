#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "sim/shrink.h"
#include "tests/bench/usage.h"
#include "tests/sim/sweep.h"

namespace {

// Whether every second word is the name of an option.
bool AreNames(int argc, const char* const* argv) {
  for (int i = 1; i < argc; i += 2) {
    if (!std::string_view(argv[i]).starts_with("--")) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage =
      "Usage: penstock_sim_sweep [--first SEED] [--seeds COUNT] [--threads COUNT]\n\n"
      "Simulates one scenario per seed, and shrinks the first that fails to failed.log.\n"
      "The defaults are 1, 1000 and 1.\n";
  const auto exit =
      penstock::bench::ExitOfArguments(argc, argv, kUsage, {"--first", "--seeds", "--threads"});
  if (exit) return *exit;
  if (argc % 2 == 0 || !AreNames(argc, argv)) {
    std::fprintf(stderr, "error: each option has one value\n\n%s", kUsage);
    return 2;
  }
  penstock::sim::SweepOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::uint64_t least = name == "--first" ? 0 : 1;
    const auto number = penstock::bench::NumberArgument(name, argv[i + 1], least);
    if (name == "--first") options.first = number;
    if (name == "--seeds") options.count = number;
    if (name == "--threads") options.threads = static_cast<std::uint32_t>(number);
  }
  if (options.first > UINT64_MAX - options.count) {
    std::fprintf(stderr, "error: --first %llu: no room for %llu seeds after it\n",
                 (unsigned long long)options.first, (unsigned long long)options.count);
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto result = penstock::sim::Sweep(options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf(
      "%llu seeds, %.1f s, %llu inputs, %llu steps, %llu tokens, %llu preemptions, %llu cached "
      "tokens\n",
      (unsigned long long)result.seeds, took.count(), (unsigned long long)result.sum.inputs,
      (unsigned long long)result.sum.steps, (unsigned long long)result.sum.tokens,
      (unsigned long long)result.sum.preemptions, (unsigned long long)result.sum.cached_tokens);
  if (!result.failed) return 0;
  std::printf("seed %llu fails (%s second core):\n", (unsigned long long)*result.failed,
              penstock::sim::HasTwin(*result.failed) ? "with a" : "without a");
  for (const auto& line : result.failure.findings) std::printf("  %s\n", line.c_str());
  const auto shrunk = penstock::sim::Shrink(penstock::sim::DrawScenario(*result.failed));
  std::printf("shrunk to %zu events, %llu inputs after %u tries:\n", shrunk.scenario.script.size(),
              (unsigned long long)shrunk.report.inputs, shrunk.tries);
  for (const auto& line : shrunk.report.findings) std::printf("  %s\n", line.c_str());
  std::ofstream("failed.log", std::ios::binary) << shrunk.report.log;
  return 1;
}
