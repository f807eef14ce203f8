// Random runs against simulated shards under all guarantees. A failure prints its seed, shrinks it
// and keeps the input log for `penstock-replay run`. PENSTOCK_SEED=n runs one seed alone,
// PENSTOCK_SEEDS=n sets how many are run.
#include "tests/sim/sweep.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "sim/scenario.h"
#include "sim/shrink.h"

namespace penstock::sim {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void ExpectNoFailure(const SweepOptions& options) {
  const SweepResult result = Sweep(options);
  if (!result.failed) {
    EXPECT_EQ(result.seeds, options.count);
    if (options.count == 1) return;
    EXPECT_GT(result.sum.tokens, result.seeds) << "the runs do something";
    return;
  }
  const Shrunk shrunk = Shrink(DrawScenario(*result.failed));
  const std::string file = "seed-" + std::to_string(*result.failed) + ".log";
  std::ofstream(file, std::ios::binary) << shrunk.report.log;
  FAIL() << "seed " << *result.failed << ": " << result.failure.findings.front() << "\nshrunk to "
         << shrunk.report.inputs << " inputs: " << shrunk.report.findings.front()
         << "\nsee: penstock-replay run " << file << " --print";
}

// Two cases, so that ctest runs them side by side.
void SweepHalf(std::uint64_t half) {
  const std::uint64_t only = FromEnvironment("PENSTOCK_SEED", 0);
  const std::uint64_t count = FromEnvironment("PENSTOCK_SEEDS", 6000) / 2;
  SweepOptions options;
  options.first = only > 0 ? only : 1 + half * count;
  options.count = only > 0 ? 1 : count;
  ExpectNoFailure(options);
}

TEST(Sweep, GuaranteesHoldForTheFirstHalfOfTheSeeds) { SweepHalf(0); }
TEST(Sweep, GuaranteesHoldForTheSecondHalfOfTheSeeds) { SweepHalf(1); }

// Fresh seeds. They follow from the commit (tests/sim/first_seed), and can be
// repeated by their start.
TEST(Sweep, GuaranteesHoldForSeedsOfThisCommit) {
  const std::uint64_t first = FromEnvironment("PENSTOCK_FIRST_SEED", 0);
  if (first == 0) GTEST_SKIP() << "PENSTOCK_FIRST_SEED is not set; tests/sim/first_seed prints one";
  SweepOptions options;
  options.first = first;
  options.count = FromEnvironment("PENSTOCK_SEEDS", 6000) / 2;
  std::printf("seeds from %llu on\n", static_cast<unsigned long long>(first));
  ExpectNoFailure(options);
}

TEST(SweepDeathTest, AnAbortPrintsItsSeed) {
  SweepOptions options;
  options.first = 7;
  options.count = 1;
  options.before_each = [] { std::abort(); };
  EXPECT_DEATH(Sweep(options), "seed 0*7 dies of a signal");
}

TEST(Sweep, TheSameSeedIsTheSameRun) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RunReport first = RunScenario(DrawScenario(seed), true);
    EXPECT_EQ(first.log, RunScenario(DrawScenario(seed), true).log) << "seed " << seed;
    EXPECT_GT(first.inputs, 0u);
  }
}

}  // namespace
}  // namespace penstock::sim
