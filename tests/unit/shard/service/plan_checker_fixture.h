// A plan checker with small bounds, and plans that are built step by step.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/service/plan_checker.h"
#include "tests/unit/shard/executor/plans.h"

namespace penstock::shard {

inline constexpr Epoch kEpoch(7);

class PlanCheckerTest : public testing::Test {
 protected:
  PlanCheckerTest() : checker_(Bounds()) {}

  static PlanBounds Bounds() {
    PlanBounds bounds;
    bounds.epoch = kEpoch;
    bounds.vocabulary = 100;
    bounds.slots = 4;
    bounds.blocks = 8;
    bounds.block_size = 4;
    bounds.max_step_tokens = 16;
    bounds.max_sequence_length = 20;
    return bounds;
  }

  static PlanBounds Grammars() {
    PlanBounds bounds = Bounds();
    bounds.grammars = true;
    return bounds;
  }
  void Reset(PlanBounds bounds) { checker_ = PlanChecker(std::move(bounds)); }

  StepPlan NextPlan() {
    StepPlan plan;
    plan.epoch = kEpoch;
    plan.step = StepId(++step_);
    return plan;
  }

  static SequenceStart Start(std::uint32_t slot, std::uint32_t prompt_length) {
    return plans::Start(slot, std::vector<TokenId>(prompt_length, 5));
  }

  StepPlan Decodes(std::uint32_t slot) {
    StepPlan plan = NextPlan();
    plan.segments = {plans::Decode(slot)};
    return plan;
  }

  // Starts `slot` with a whole prompt of four tokens in block `block`.
  StepPlan WholePrompt(std::uint32_t slot, std::uint32_t block) {
    StepPlan plan = NextPlan();
    plan.starts = {Start(slot, 4)};
    plan.block_ops = {plans::Append(slot, block)};
    plan.segments = {plans::Prompt(slot, 0, 4)};
    return plan;
  }

  static SequenceResult ResultOf(const Segment& segment, std::uint32_t committed,
                                 ShardFinish finish = ShardFinish::kNone) {
    SequenceResult result;
    result.slot = segment.slot;
    result.sequence = SequenceId(100 + segment.slot.value());
    result.committed_length = committed;
    result.finish = finish;
    return result;
  }

  // Answers the plan like an engine: every segment ends at `committed`.
  void Run(const StepPlan& plan, std::uint32_t committed, ShardFinish finish = ShardFinish::kNone,
           std::uint32_t tokens = 0) {
    ASSERT_EQ(Message(checker_.Check(plan)), "");
    StepResult result;
    for (const Segment& segment : plan.segments) {
      result.sequences.push_back(ResultOf(segment, committed, finish));
      for (std::uint32_t i = 0; i < tokens; ++i)
        result.sequences.back().tokens.push_back({5, 0, {}});
    }
    ASSERT_EQ(Message(checker_.Observe(plan, result)), "");
  }

  void ExpectRefused(const StepPlan& plan, const std::string& part) {
    const absl::Status status = checker_.Check(plan);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), testing::HasSubstr(part));
  }

  PlanChecker checker_;
  std::uint64_t step_ = 0;
};

}  // namespace penstock::shard
