// Random runs against simulated shards; the guarantees are checked after each input. A failure
// prints its seed; PENSTOCK_SEED=n runs that one alone, PENSTOCK_SEEDS=n sets how many are run.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/unit/scheduler/workload.h"

namespace penstock::scheduler {
namespace {

std::uint64_t FromEnvironment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(SchedulerProperty, GuaranteesHoldUnderRandomLoadsAndFaults) {
  const std::uint64_t only = FromEnvironment("PENSTOCK_SEED", 0);
  const std::uint64_t count = FromEnvironment("PENSTOCK_SEEDS", 400);
  const std::uint64_t first = only > 0 ? only : 1;
  const std::uint64_t last = only > 0 ? only : count;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Workload workload(RandomOptions(seed));
    workload.Run();
    const std::vector<std::string> violations = workload.Violations();
    ASSERT_TRUE(violations.empty())
        << "seed " << seed << ": " << violations.front() << " (" << violations.size() << " in all)";
  }
}

TEST(SchedulerProperty, SameInputsGiveTheSameOutputs) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Workload first(RandomOptions(seed));
    Workload second(RandomOptions(seed));
    first.Run();
    second.Run();
    ASSERT_EQ(first.transcript(), second.transcript()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace penstock::scheduler
