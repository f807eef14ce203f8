// Request-level batching through the whole scheduler: which requests share a batch, and when the
// next one starts.
#include "scheduler/admission/static_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;

// The requests of each batch.
class Batches {
 public:
  void Note(const Outputs& out) {
    std::set<std::uint64_t> admitted;
    for (const Decision& decision : out.decisions) {
      if (decision.kind == DecisionKind::kAdmitted) admitted.insert(decision.request.value());
    }
    if (!admitted.empty()) batches_.push_back(admitted);
  }
  const std::vector<std::set<std::uint64_t>>& all() const { return batches_; }

 private:
  std::vector<std::set<std::uint64_t>> batches_;
};

Batches RunAll(Harness& harness) {
  Batches batches;
  batches.Note(harness.Up());
  while (harness.in_flight() > 0) batches.Note(harness.Result());
  EXPECT_EQ(harness.state().waiting, 0u);
  return batches;
}

Config Static(StaticGrouping grouping) {
  Config config;
  config.batching = Batching::kStatic;
  config.static_grouping = grouping;
  return config;
}

using Set = std::set<std::uint64_t>;

TEST(StaticBatch, EqualTakesOnlyRequestsWithTheLengthsOfTheFirst) {
  Harness harness(Static(StaticGrouping::kEqual));
  harness.Arrive(1, 4, 2);
  harness.Arrive(2, 4, 3);  // another output length
  harness.Arrive(3, 5, 2);  // another prompt length
  harness.Arrive(4, 4, 2);
  harness.Arrive(5, 4, 3);
  EXPECT_THAT(RunAll(harness).all(), ElementsAre(Set{1, 4}, Set{2, 5}, Set{3}));
}

TEST(StaticBatch, WindowTakesWaitingRequestsUpToTheBatchSize) {
  Config config = Static(StaticGrouping::kWindow);
  config.max_batch_size = 2;
  Harness harness(config);
  harness.Arrive(1, 4, 2);
  harness.Arrive(2, 7, 5);
  harness.Arrive(3, 4, 2);
  EXPECT_THAT(RunAll(harness).all(), ElementsAre(Set{1, 2}, Set{3}));
}

TEST(StaticBatch, EqualIsBoundedByTheBatchSizeToo) {
  Config config = Static(StaticGrouping::kEqual);
  config.max_batch_size = 2;
  Harness harness(config);
  for (std::uint64_t id = 1; id <= 3; ++id) harness.Arrive(id, 4, 2);
  harness.Arrive(4, 3, 2);
  EXPECT_THAT(RunAll(harness).all(), ElementsAre(Set{1, 2}, Set{3}, Set{4}));
}

TEST(StaticBatch, NoRequestIsAddedToARunningBatch) {
  Harness harness(Static(StaticGrouping::kEqual));
  Batches batches;
  batches.Note(harness.Up());
  batches.Note(harness.Arrive(1, 4, 6));
  harness.Result();
  batches.Note(harness.Arrive(2, 4, 6));
  EXPECT_EQ(batches.all().size(), 1u);
  EXPECT_EQ(harness.state().waiting, 1u);
  while (harness.in_flight() > 0) batches.Note(harness.Result());
  EXPECT_THAT(batches.all(), ElementsAre(Set{1}, Set{2}));
}

TEST(StaticBatch, ARequestThatWaitsForTheBatchHasAReason) {
  Harness harness(Static(StaticGrouping::kEqual));
  harness.Up();
  harness.Arrive(1, 4, 6);
  const Outputs out = harness.Arrive(2, 4, 6);
  const auto told = [](const Decision& decision) {
    return decision.request == RequestId(2) && decision.kind == DecisionKind::kDeferred &&
           decision.short_of == Budget::kBatchSize && decision.behind == RequestId(1);
  };
  Outputs later = harness.Result();
  later.decisions.insert(later.decisions.end(), out.decisions.begin(), out.decisions.end());
  EXPECT_TRUE(std::any_of(later.decisions.begin(), later.decisions.end(), told));
}

}  // namespace
}  // namespace penstock::scheduler
