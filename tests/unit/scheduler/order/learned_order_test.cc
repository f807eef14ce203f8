// Order::kLearned: who is next by predicted work, and what a request that waited too long gets.
#include "scheduler/order/learned_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Learned : public ::testing::Test {
 protected:
  // One request runs at a time.
  static Config OneAtATime() {
    Config config;
    config.order = Order::kLearned;
    config.max_batch_size = 1;
    config.max_step_tokens = 8;
    config.starvation_steps = 0;
    return config;
  }

  void Make(const Config& config) {
    GroupCapacity capacity = Harness::Capacity();
    capacity.max_step_tokens = config.max_step_tokens;
    harness_.emplace(config, capacity);
    Take(harness_->Up());
  }
  void Arrive(std::uint64_t id, std::uint32_t prompt, std::uint32_t most, std::uint32_t ranked,
              std::uint32_t predicted = 0) {
    Arrival arrival = Harness::Request(id, prompt, most);
    arrival.ranked_tokens = ranked;
    arrival.predicted_tokens = predicted;
    arrival.ignore_eos = true;
    Take(harness_->Apply(arrival));
  }
  void Run() {
    while (harness_->in_flight() > 0) Take(harness_->Result());
  }

  void Take(const Outputs& out) {
    for (const Decision& d : out.decisions) {
      if (d.kind == DecisionKind::kAdmitted) admitted_.push_back(d.request.value());
      if (d.kind == DecisionKind::kPreempted) preempted_.push_back(d);
      if (d.kind == DecisionKind::kFinished) finished_.push_back(d.request.value());
    }
    for (const Event& event : out.events) {
      const auto* tokens = std::get_if<Tokens>(&event.what);
      if (tokens == nullptr) continue;
      std::uint32_t& count = tokens_[event.request.value()];
      EXPECT_EQ(tokens->first_index, count) << "no token is missing or repeated";
      count += static_cast<std::uint32_t>(tokens->tokens.size());
    }
  }

  std::optional<Harness> harness_;
  std::vector<std::uint64_t> admitted_;
  std::vector<std::uint64_t> finished_;
  std::vector<Decision> preempted_;
  std::map<std::uint64_t, std::uint32_t> tokens_;
};

TEST_F(Learned, TheLeastPredictedWorkIsNext) {
  Make(OneAtATime());
  Arrive(1, 4, 6, 0);       // runs
  Arrive(2, 4, 50, 40);     // 41
  Arrive(3, 4, 50, 10);     // 11
  Arrive(4, 4, 20, 0);      // 21: without a prediction its longest output
  Arrive(5, 4, 50, 2, 30);  // 31: the client knows better
  Arrive(6, 4, 5, 49);      // 6: never more than its longest output
  Run();
  EXPECT_THAT(admitted_, ElementsAre(1, 6, 3, 4, 5, 2));
  EXPECT_THAT(preempted_, IsEmpty());
}

TEST_F(Learned, StepsOfThePromptCountWithoutWhatIsCached) {
  Make(OneAtATime());
  Arrive(1, 40, 6, 0);
  Run();  // its prompt of 40 tokens is in the cache
  Arrive(2, 4, 30, 0);
  Arrive(3, 40, 50, 10);  // 10 + 5 chunks of 8
  Arrive(4, 4, 50, 13);   // 13 + 1
  Arrival cached = Harness::Request(1, 40, 50);
  cached.request = RequestId(5);
  cached.ranked_tokens = 10;  // 10 + 1
  Take(harness_->Apply(cached));
  Run();
  EXPECT_THAT(admitted_, ElementsAre(1, 2, 5, 4, 3));
}

// The short jobs of papers on ranking: 50 of ten tokens, after one of 200.
TEST_F(Learned, ShortRequestsPassALongOneUntilItIsDue) {
  Config config = OneAtATime();
  config.starvation_steps = 100;
  config.starvation_quantum = 5;
  Make(config);
  Arrive(99, 4, 10, 10);
  Arrive(1, 4, 200, 200);
  for (std::uint64_t id = 2; id <= 51; ++id) Arrive(id, 4, 10, 10);
  Run();
  ASSERT_EQ(finished_.size(), 52u);
  EXPECT_EQ(finished_.back(), 1u);
  const auto place = std::ranges::find(admitted_, 1u) - admitted_.begin();
  EXPECT_THAT(place, ::testing::AllOf(::testing::Ge(7), ::testing::Le(12)))
      << "about 100 steps, or ten short requests";
  EXPECT_EQ(tokens_[1], 200u);
}

TEST_F(Learned, RequestsThatAreDueTakeTurns) {
  Config config = OneAtATime();
  config.starvation_steps = 6;
  config.starvation_quantum = 5;
  Make(config);
  Arrive(1, 4, 20, 20);
  Arrive(2, 4, 20, 20);
  Arrive(3, 4, 20, 20);
  Run();
  // The first was not due. The second and the third became due while it ran.
  ASSERT_FALSE(preempted_.empty());
  for (const Decision& d : preempted_) {
    EXPECT_EQ(d.short_of, Budget::kOrder);
    EXPECT_EQ(d.needed, 5u);
    EXPECT_GE(d.available, 5u);
    EXPECT_NE(d.request, RequestId(1));
  }
  EXPECT_EQ(preempted_[0].request, RequestId(2));
  EXPECT_EQ(preempted_[0].behind, RequestId(3));
  for (const std::uint64_t id : {1u, 2u, 3u}) EXPECT_EQ(tokens_[id], 20u);
}

TEST_F(Learned, WithoutAGuardNoRequestYields) {
  Make(OneAtATime());
  for (std::uint64_t id = 1; id <= 5; ++id) Arrive(id, 4, 40, static_cast<std::uint32_t>(id));
  Run();
  EXPECT_THAT(preempted_, IsEmpty());
  EXPECT_THAT(admitted_, ElementsAre(1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace penstock::scheduler
