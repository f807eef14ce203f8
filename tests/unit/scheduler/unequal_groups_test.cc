// Replica groups of different capacity: a request that fits one group only never keeps another
// group from a request that fits it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::Contains;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Group 0 has candidates for contrastive search, group 1 has room for long sequences.
class UnequalGroups : public ::testing::Test {
 protected:
  void Start(Order order) {
    Config config;
    config.order = order;
    config.max_batch_size = 1;
    core_.emplace(config);
    GroupCapacity capacity = Harness::Capacity();
    capacity.max_sequence_length = 32;
    capacity.max_candidates = 4;
    Up(GroupId(0), capacity);
    capacity.max_sequence_length = 128;
    capacity.max_candidates = 0;
    Up(GroupId(1), capacity);
  }

  // Pools of two and of four blocks, for sequences that may outgrow their reservations.
  void StartSmall() {
    Config config;
    config.admission = AdmissionMode::kOptimistic;
    config.pipeline_depth = 3;
    config.prefix_caching = false;
    core_.emplace(config);
    GroupCapacity capacity = Harness::Capacity();
    capacity.blocks = 2;
    Up(GroupId(0), capacity);
    capacity.blocks = 4;
    Up(GroupId(1), capacity);
  }

  // The prompt begins with eight tokens that all requests of this family have.
  static Arrival Request(std::uint64_t id, TokenId family, std::uint32_t own) {
    Arrival arrival = Harness::Request(id, 8, 4);
    arrival.prompt.assign(8, family);
    arrival.prompt.insert(arrival.prompt.end(), own, static_cast<TokenId>(200 + id));
    return arrival;
  }
  static Arrival Contrastive(std::uint64_t id, TokenId family, std::uint32_t own = 0) {
    Arrival arrival = Request(id, family, own);
    arrival.sampling.penalty_alpha = 0.6f;
    arrival.sampling.top_k = 2;
    return arrival;
  }
  static Arrival Long(std::uint64_t id, TokenId family, std::uint32_t own = 0) {
    Arrival arrival = Request(id, family, own);
    arrival.max_new_tokens = 60;
    return arrival;
  }

  void Apply(decltype(Input::what) what) {
    now_ += Duration(10);
    Outputs out;
    core_->Apply({now_, std::move(what)}, out);
    for (const PlanOut& plan : out.plans) {
      results_.push_back({plan.group, shards_.at(plan.group).Execute(plan.plan)});
      for (const RequestId request : plan.requests) started_[request] = plan.group;
    }
    for (const Event& event : out.events) {
      if (std::holds_alternative<Finished>(event.what)) finished_.push_back(event.request.value());
    }
  }
  // Delivers the oldest result of the group.
  void Result(GroupId group) {
    const auto it = std::ranges::find(results_, group, &StepDone::group);
    StepDone done = std::move(*it);
    results_.erase(it);
    Apply(std::move(done));
  }
  void RunAll() {
    while (!results_.empty()) {
      StepDone done = std::move(results_.front());
      results_.pop_front();
      Apply(std::move(done));
    }
  }

  std::map<RequestId, GroupId> started_;
  std::vector<std::uint64_t> finished_;

 private:
  void Up(GroupId group, const GroupCapacity& capacity) {
    shards_.try_emplace(group, capacity, sim::SimGroupOptions{});
    Apply(GroupUp{group, Epoch(1), capacity, {}});
  }

  std::optional<Scheduler> core_;
  std::map<GroupId, sim::SimGroup> shards_;
  std::deque<StepDone> results_;
  Time now_;
};

TEST_F(UnequalGroups, AnIdleGroupTakesTheFirstRequestThatFitsIt) {
  Start(Order::kFcfs);
  Apply(Long(1, 101));
  Apply(Long(2, 102));  // waits for group 1
  Apply(Request(3, 103, 0));
  EXPECT_THAT(started_,
              UnorderedElementsAre(Pair(RequestId(1), GroupId(1)), Pair(RequestId(3), GroupId(0))));
  RunAll();
  EXPECT_THAT(finished_, UnorderedElementsAre(1, 2, 3));
}

// The cache of each group has the prefix of the request that fits the other group only, so each
// group's order names that request.
TEST_F(UnequalGroups, GroupsThatNameEachOthersRequestsDoNotStandStill) {
  Start(Order::kLongestPrefix);
  Apply(Contrastive(1, 101));
  Apply(Long(2, 102));
  Apply(Long(3, 101, 8));
  Apply(Contrastive(4, 102, 8));
  RunAll();
  EXPECT_THAT(finished_, UnorderedElementsAre(1, 2, 3, 4));
}

// Group 0 has no row to plan, and asks for the offer of group 1 before that one composes its step.
TEST_F(UnequalGroups, NoRequestWaitsForTheHeadroomOfOneThatEnded) {
  StartSmall();
  Apply(Harness::Request(1, 4, 2));  // fills group 0
  Arrival grows = Harness::Request(2, 4, 12);
  grows.predicted_tokens = 1;
  Apply(grows);  // holds two blocks of group 1, and headroom of one
  Apply(Cancel{RequestId(2)});
  Arrival waits = Harness::Request(3, 4, 4);
  waits.predicted_tokens = 4;
  Apply(waits);  // needs two blocks
  EXPECT_THAT(started_, SizeIs(2));
  Result(GroupId(1));
  EXPECT_THAT(started_, Contains(Pair(RequestId(3), GroupId(1))));
}

}  // namespace
}  // namespace penstock::scheduler
