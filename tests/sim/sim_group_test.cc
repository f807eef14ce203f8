#include "sim/sim_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr GroupCapacity kCapacity{8, 4, 4, 32, 64, false};

BlockOp Append(std::uint32_t slot, std::uint32_t block) {
  BlockOp op;
  op.slot = SlotId(slot);
  op.dst = BlockId(block);
  return op;
}

Segment Chunk(std::uint32_t slot, std::uint32_t first, std::uint32_t count,
              Segment::Logits logits) {
  return {Segment::Kind::kPrompt, SlotId(slot), first, count, logits, 1};
}

Segment Decode(std::uint32_t slot) { return {Segment::Kind::kDecode, SlotId(slot)}; }

// Plans of one group, numbered as they are made.
class SimGroupTest : public ::testing::Test {
 protected:
  StepPlan& Plan() {
    plan_ = StepPlan{};
    plan_.epoch = Epoch(1);
    plan_.step = StepId(++steps_);
    return plan_;
  }
  void Start(std::uint32_t slot, std::vector<TokenId> prompt, std::uint32_t cached = 0) {
    SequenceStart start;
    start.slot = SlotId(slot);
    start.sequence = SequenceId(slot + 1);
    start.prompt = std::move(prompt);
    start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
    start.cached_length = cached;
    start.max_new_tokens = 9;
    plan_.starts.push_back(start);
  }
  TokenId Token(const StepResult& result, std::size_t sequence = 0) {
    return result.sequences.at(sequence).tokens[0].token;
  }

  SimGroup group_{kCapacity, {}};
  StepPlan plan_;
  std::uint64_t steps_ = 0;
};

const std::vector<TokenId> kPrompt = {11, 12, 13, 14, 15};

TEST_F(SimGroupTest, BatchedOutputsEqualThoseOfTheRequestAlone) {
  const std::vector<TokenId> output = TokenSource{}.Output(kPrompt, 2);
  Plan();
  Start(0, kPrompt);
  plan_.block_ops = {Append(0, 3)};
  plan_.segments = {Chunk(0, 0, 2, Segment::Logits::kNone)};
  EXPECT_THAT(group_.Execute(plan_).sequences.at(0).tokens, IsEmpty());
  Plan().block_ops = {Append(0, 5)};
  plan_.segments = {Chunk(0, 2, 3, Segment::Logits::kLast)};
  EXPECT_EQ(Token(group_.Execute(plan_)), output[0]);
  Plan().segments = {Decode(0)};
  EXPECT_EQ(Token(group_.Execute(plan_)), output[1]);
  EXPECT_THAT(group_.violations(), IsEmpty());
}

TEST_F(SimGroupTest, ASecondWriterOfABlockChangesTheTokens) {
  Plan();
  Start(0, kPrompt);
  plan_.block_ops = {Append(0, 3), Append(0, 5)};
  plan_.segments = {Chunk(0, 0, 5, Segment::Logits::kLast)};
  group_.Execute(plan_);
  Plan();
  Start(1, {40, 41, 42, 43});
  plan_.block_ops = {Append(1, 3)};
  plan_.segments = {Chunk(1, 0, 4, Segment::Logits::kLast), Decode(0)};
  const StepResult result = group_.Execute(plan_);
  EXPECT_NE(Token(result, 1), TokenSource{}.Output(kPrompt, 2)[1]);
  EXPECT_THAT(group_.violations(), Contains(HasSubstr("does not hold its tokens")));
}

TEST_F(SimGroupTest, ASharedPrefixOfTheSamePlanMayBeRead) {
  const std::vector<TokenId> other = {11, 12, 13, 14, 99};
  Plan();
  Start(0, kPrompt);
  Start(1, other, 4);
  plan_.block_ops = {Append(0, 3), Append(0, 5), Append(1, 3), Append(1, 6)};
  plan_.segments = {Chunk(1, 4, 1, Segment::Logits::kLast), Chunk(0, 0, 5, Segment::Logits::kLast)};
  EXPECT_EQ(Token(group_.Execute(plan_)), TokenSource{}.Output(other, 1)[0]);
  EXPECT_THAT(group_.violations(), IsEmpty());
}

TEST_F(SimGroupTest, AWrongPrefixIsAViolation) {
  Plan();
  Start(0, kPrompt, 4);
  plan_.block_ops = {Append(0, 3), Append(0, 5)};
  plan_.segments = {Chunk(0, 4, 1, Segment::Logits::kLast)};
  EXPECT_NE(Token(group_.Execute(plan_)), TokenSource{}.Output(kPrompt, 1)[0]);
  EXPECT_THAT(group_.violations(), Contains(HasSubstr("position 3")));
}

TEST_F(SimGroupTest, PlansThatNoShardCouldExecuteAreViolations) {
  Plan().segments = {Decode(2)};
  plan_.ends = {SlotId(1)};
  group_.Execute(plan_);
  EXPECT_THAT(group_.violations(), Contains(HasSubstr("names a started slot")));
  EXPECT_THAT(group_.violations(), Contains(HasSubstr("ends name a started slot")));
}

TEST_F(SimGroupTest, AStepStartsWhenTheOneBeforeItIsDone) {
  SimGroupOptions options;
  options.step_time = [](const StepPlan&, std::span<const SegmentLoad>) { return Duration(10); };
  SimGroup group(kCapacity, options);
  EXPECT_EQ(group.Execute(Plan(), Time(Duration(5))).at, Time(Duration(15)));
  EXPECT_EQ(group.Execute(Plan(), Time(Duration(6))).at, Time(Duration(25)));
  EXPECT_EQ(group.Execute(Plan(), Time(Duration(90))).at, Time(Duration(100)));
}

}  // namespace
}  // namespace penstock::sim
