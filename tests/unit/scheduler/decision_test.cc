// While a request waits, its newest record names the short budget, the amount and the request that
// it waits for. Freeing exactly that amount admits it in the next plan. One test for each reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "scheduler/order/order_policy.h"
#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// Keeps the newest deferral of each request.
class Blocked : public ::testing::Test {
 protected:
  void Make(const Config& config, const GroupCapacity& capacity) {
    harness_.emplace(config, capacity);
    Take(harness_->Up());
  }
  void Arrive(std::uint64_t id, std::uint32_t prompt, std::uint32_t most,
              std::int32_t priority = 0) {
    Arrival arrival = Harness::Request(id, prompt, most);
    arrival.priority = priority;
    Take(harness_->Apply(arrival));
  }
  void Result() { Take(harness_->Result()); }
  void Settle() {  // the pipeline is full and its oldest results are of the newest requests
    for (int i = 0; i < 3; ++i) Result();
  }
  void Cancel(std::uint64_t id) { Take(harness_->Apply(scheduler::Cancel{RequestId(id)})); }

  void Take(const Outputs& out) {
    for (const Decision& d : out.decisions) {
      if (d.kind == DecisionKind::kDeferred) newest_[d.request.value()] = d;
      if (d.kind == DecisionKind::kAdmitted) admitted_[d.request.value()] = *d.step;
    }
    for (const PlanOut& plan : out.plans) last_plan_ = plan.plan.step;
  }

  Decision Newest(std::uint64_t id) const {
    const auto it = newest_.find(id);
    return it == newest_.end() ? Decision{} : it->second;
  }
  void ExpectBlocked(std::uint64_t id, Budget budget, std::uint64_t needed, std::uint64_t available,
                     std::optional<std::uint64_t> behind) const {
    const Decision d = Newest(id);
    EXPECT_FALSE(admitted_.contains(id));
    EXPECT_EQ(d.short_of, budget);
    EXPECT_EQ(d.needed, needed);
    EXPECT_EQ(d.available, available);
    EXPECT_EQ(d.behind.has_value(), behind.has_value());
    if (behind && d.behind) {
      EXPECT_EQ(d.behind->value(), *behind);
    }
  }
  // Delivers results until there is a new plan, which must admit the request.
  void ExpectInTheNextPlan(std::uint64_t id) {
    const StepId before = last_plan_;
    for (int i = 0; i < 4 && last_plan_ == before && harness_->in_flight() > 0; ++i) Result();
    ASSERT_TRUE(admitted_.contains(id));
    EXPECT_EQ(admitted_[id].value(), before.value() + 1);
  }

  // Delivers results until one brings this decision about `one` and the plan that admits `other`.
  void ExpectAdmittedWhen(DecisionKind kind, std::uint64_t one, std::uint64_t other) {
    StepId before;
    bool decided = false;
    while (!decided && harness_->in_flight() > 0) {
      EXPECT_FALSE(admitted_.contains(other));
      before = last_plan_;
      const Outputs out = harness_->Result();
      Take(out);
      for (const Decision& d : All(out, kind)) decided = decided || d.request == RequestId(one);
    }
    ASSERT_TRUE(decided && admitted_.contains(other));
    EXPECT_EQ(admitted_[other].value(), before.value() + 1);
  }

  std::optional<Harness> harness_;
  std::map<std::uint64_t, Decision> newest_;
  std::map<std::uint64_t, StepId> admitted_;
  StepId last_plan_;
};

TEST_F(Blocked, ByBlocks) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.blocks = 12;
  Make({}, capacity);
  Arrive(1, 4, 20);  // 6 blocks
  Arrive(2, 4, 4);   // 2 blocks
  Settle();
  Arrive(3, 8, 16);  // 6 blocks, 4 are there
  Result();
  ExpectBlocked(3, Budget::kBlocks, 6, 4, 1);
  ExpectAdmittedWhen(DecisionKind::kRetired, 2, 3);  // exactly 2 blocks more
}

TEST_F(Blocked, ByKvHeadroom) {
  Config config;
  config.admission = AdmissionMode::kOptimistic;
  GroupCapacity capacity = Harness::Capacity();
  capacity.blocks = 12;
  Make(config, capacity);
  Arrival arrival = Harness::Request(1, 4, 36);
  arrival.predicted_tokens = 4;  // it outgrows its 2 blocks at once
  Take(harness_->Apply(arrival));
  Settle();
  Settle();
  Arrive(2, 30, 16);
  Result();
  const Decision blocked = Newest(2);
  EXPECT_EQ(blocked.short_of, Budget::kBlocks);
  EXPECT_GT(blocked.needed, blocked.available);
  EXPECT_EQ(blocked.behind, RequestId(1));
  Cancel(1);
  ExpectInTheNextPlan(2);
}

TEST_F(Blocked, ByTotalTokens) {
  Config config;
  config.max_batch_total_tokens = 60;
  Make(config, Harness::Capacity());
  Arrive(1, 10, 30);
  Arrive(2, 4, 4);
  Settle();
  Arrive(3, 10, 10);  // 20, 12 are left
  Result();
  ExpectBlocked(3, Budget::kTotalTokens, 20, 12, 1);
  ExpectAdmittedWhen(DecisionKind::kFinished, 2, 3);  // 8 tokens more: exactly enough
}

TEST_F(Blocked, BySlots) {
  GroupCapacity capacity = Harness::Capacity();
  capacity.slots = 2;
  Make({}, capacity);
  Arrive(1, 4, 40);
  Arrive(2, 4, 40);
  Settle();
  Arrive(3, 4, 4);
  Result();
  ExpectBlocked(3, Budget::kBatchSize, 3, 2, 1);  // as many may run as there are slots
  Cancel(2);
  Result();
  // The slot is free when no plan in flight refers to request 2 any more.
  if (!admitted_.contains(3)) ExpectBlocked(3, Budget::kSlots, 1, 0, 1);
  ExpectInTheNextPlan(3);
}

TEST_F(Blocked, ByBatchSize) {
  Config config;
  config.max_batch_size = 2;
  Make(config, Harness::Capacity());
  Arrive(1, 4, 40);
  Arrive(2, 4, 40);
  Settle();
  Arrive(3, 4, 4);
  Result();
  ExpectBlocked(3, Budget::kBatchSize, 3, 2, 1);
  Cancel(2);
  ExpectInTheNextPlan(3);
}

TEST_F(Blocked, ByStepTokensForTheDecodesOfAllSequences) {
  Config config;
  config.max_step_tokens = 2;
  Make(config, Harness::Capacity());
  Arrive(1, 2, 40);
  Arrive(2, 2, 40);
  for (int i = 0; i < 6; ++i) Result();
  Arrive(3, 2, 4);
  Result();
  ExpectBlocked(3, Budget::kStepTokens, 3, 2, 1);
  Cancel(2);
  ExpectInTheNextPlan(3);
}

TEST_F(Blocked, ByThePrefillShare) {
  Config config;
  config.max_batch_prefill_tokens = 8;
  config.prefill = Prefill::kWhole;
  config.waiting_served_permille = 0;
  Make(config, Harness::Capacity());
  Arrive(1, 8, 40);
  Arrive(2, 6, 4);
  Arrive(3, 4, 4);  // in the step that holds 2 only 2 of its 4 tokens would fit
  Result();
  ExpectBlocked(3, Budget::kPrefillTokens, 4, 2, 1);
  ExpectInTheNextPlan(3);
}

TEST_F(Blocked, ByOrder) {
  Config config;
  config.order = Order::kPriority;
  config.max_batch_size = 1;
  Make(config, Harness::Capacity());
  Arrive(1, 4, 40);
  Arrive(2, 4, 4);
  Result();
  ExpectBlocked(2, Budget::kBatchSize, 2, 1, 1);
  Arrive(3, 4, 4, 5);
  ExpectBlocked(2, Budget::kOrder, 1, 0, 3);
  Arrive(4, 4, 4, 2);
  ExpectBlocked(2, Budget::kOrder, 1, 0, 4);
  ExpectBlocked(4, Budget::kOrder, 1, 0, 3);
  Cancel(4);
  ExpectBlocked(2, Budget::kOrder, 1, 0, 3);
  Cancel(3);  // who is in front of it; now only the running one is
  Result();
  ExpectBlocked(2, Budget::kBatchSize, 2, 1, 1);
  Cancel(1);
  ExpectInTheNextPlan(2);
}

TEST_F(Blocked, ByOrderUntilTheRequestBeforeItIsAdmitted) {
  Config config;
  config.max_batch_size = 2;
  Make(config, Harness::Capacity());
  for (std::uint64_t id = 1; id <= 4; ++id) Arrive(id, 4, 40);
  Settle();
  ExpectBlocked(4, Budget::kOrder, 1, 0, 3);
  Cancel(1);
  ExpectInTheNextPlan(3);
  ExpectBlocked(4, Budget::kBatchSize, 3, 2, 2);
  Cancel(2);
  ExpectInTheNextPlan(4);
}

TEST_F(Blocked, ByNoRequestThatLeft) {
  Config config;
  config.max_batch_size = 1;
  Make(config, Harness::Capacity());
  for (std::uint64_t id = 1; id <= 3; ++id) Arrive(id, 4, 40);
  Settle();
  ExpectBlocked(3, Budget::kOrder, 1, 0, 2);
  Cancel(2);  // all plans are in flight, so only the next result tells why 3 waits
  const Snapshot state = harness_->state();
  EXPECT_EQ(state.waiting_for[static_cast<std::size_t>(Budget::kOrder)], 0u);
  EXPECT_EQ(state.waiting_for[static_cast<std::size_t>(Budget::kNone)], 1u);
  Result();
  ExpectBlocked(3, Budget::kBatchSize, 2, 1, 1);
}

// The request that is next differs with the prefix cache, so none is named.
TEST_F(Blocked, ByAnOrderThatNamesNoRequest) {
  Config config;
  config.order = Order::kLongestPrefix;
  config.max_batch_size = 1;
  Make(config, Harness::Capacity());
  for (std::uint64_t id = 1; id <= 3; ++id) Arrive(id, 4, 40);
  Settle();
  ExpectBlocked(2, Budget::kBatchSize, 2, 1, 1);
  ExpectBlocked(3, Budget::kOrder, 1, 0, {});
}

TEST_F(Blocked, WhileNoGroupIsUp) {
  harness_.emplace();
  Arrive(1, 4, 4);
  Arrive(2, 4, 4);
  ExpectBlocked(1, Budget::kGroup, 1, 0, {});
  ExpectBlocked(2, Budget::kGroup, 1, 0, {});
  Take(harness_->Up());
  EXPECT_EQ(admitted_[1], StepId(1));
  EXPECT_EQ(admitted_[2], StepId(1));
  Arrive(3, 4, 400);  // ends at once: too large; does not count
  harness_->Apply(GroupLost{GroupId(0), harness_->epoch(), "rank 0 died"});
  Arrive(4, 4, 4);
  ExpectBlocked(4, Budget::kGroup, 1, 0, {});
}

// TGI without chunking: new requests are admitted in numbers, or after max_waiting_tokens steps.
TEST_F(Blocked, ByTheAdmissionGate) {
  Config config;
  config.prefill = Prefill::kWhole;
  config.waiting_served_permille = 500;
  config.max_waiting_tokens = 1000;
  Make(config, Harness::Capacity());
  for (std::uint64_t id = 1; id <= 4; ++id) Arrive(id, 4, 40);
  while (harness_->state().running < 4) Result();
  Settle();
  Arrive(5, 4, 4);
  Result();
  ExpectBlocked(5, Budget::kJoinSize, 2, 1, 1);
  Arrive(6, 4, 4);
  ExpectInTheNextPlan(5);
  EXPECT_EQ(admitted_[6], admitted_[5]) << "one more was enough for both";
}

TEST_F(Blocked, ByTheAdmissionGateForMaxWaitingTokensStepsOnly) {
  Config config;
  config.prefill = Prefill::kWhole;
  config.waiting_served_permille = 1000;
  config.max_waiting_tokens = 7;
  Make(config, Harness::Capacity());
  // The first two are admitted one after the other: the gate is closed only for more running ones.
  for (std::uint64_t id = 1; id <= 2; ++id) Arrive(id, 4, 40);
  while (!admitted_.contains(2)) Result();
  Arrive(3, 4, 4);
  while (!admitted_.contains(3)) Result();
  EXPECT_EQ(admitted_[3].value(), admitted_[2].value() + 7);
}

TEST_F(Blocked, ChunkedPromptsAreAdmittedAtAnyStepAsInTgi) {
  Config config;
  config.waiting_served_permille = 100000;
  Make(config, Harness::Capacity());
  for (std::uint64_t id = 1; id <= 4; ++id) Arrive(id, 4, 40);
  Settle();
  EXPECT_THAT(admitted_, SizeIs(4));
}

// G6: MaxWaitSteps, which the router logs at start, holds.
TEST_F(Blocked, NoLongerThanTheBoundOfTheOrder) {
  for (const Order order :
       {Order::kFcfs, Order::kPriority, Order::kShortestPredicted, Order::kLearned}) {
    Config config;
    config.order = order;
    config.max_overtakes = 4;
    config.max_waiting_requests = 6;
    config.max_step_tokens = 9;
    GroupCapacity capacity = Harness::Capacity();
    capacity.blocks = 10;
    capacity.slots = 3;
    capacity.max_sequence_length = 40;
    Make(config, capacity);
    const std::uint64_t most = MaxWaitSteps(config, capacity);
    std::map<std::uint64_t, std::uint64_t> arrived;
    admitted_.clear();
    last_plan_ = StepId(0);
    for (std::uint64_t id = 1; id <= 600; ++id) {
      arrived[id] = last_plan_.value();
      Arrive(id, 1 + static_cast<std::uint32_t>(id * 7 % 30), 1 + id % 9, static_cast<int>(id % 5));
      while (harness_->state().waiting == 6) Result();
    }
    while (harness_->in_flight() > 0) Result();
    ASSERT_EQ(admitted_.size(), 600u);
    for (const auto& [id, step] : admitted_) EXPECT_LE(step.value() - arrived[id], most);
  }
}

// In a queue of 4,096 requests no reason is recorded twice.
TEST_F(Blocked, ReasonsAreRecordedWhenTheyChange) {
  Config config;
  config.max_batch_size = 1;
  config.max_waiting_requests = 4096;
  Make(config, Harness::Capacity());
  Arrive(1, 4, 100);
  std::size_t records = 0;
  for (std::uint64_t id = 2; id <= 4000; ++id) {
    records += harness_->Arrive(id, 4, 4).decisions.size();
  }
  EXPECT_LE(records, 2u * 4000u) << "queued, and behind whom";
  Result();
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(All(harness_->Result(), DecisionKind::kDeferred), IsEmpty());
  }
  const Snapshot state = harness_->state();
  EXPECT_EQ(state.waiting_for[static_cast<std::size_t>(Budget::kOrder)], 3998u);
  EXPECT_EQ(state.waiting_for[static_cast<std::size_t>(Budget::kBatchSize)], 1u);
}

}  // namespace
}  // namespace penstock::scheduler
