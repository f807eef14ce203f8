// Plans for layers with a window, which have block tables of their own: their entries before the
// window hold nothing.
#include <gmock/gmock.h>

#include "common/status.h"
#include "tests/unit/shard/executor/plans.h"
#include "tests/unit/shard/service/plan_checker_fixture.h"

namespace penstock::shard {
namespace {

using plans::Append;
using plans::Decode;
using plans::Prompt;

// Blocks of four tokens, and layers with a window of five.
class WindowTables : public PlanCheckerTest {
 protected:
  WindowTables() {
    PlanBounds bounds = Bounds();
    bounds.blocks = {8, 3};
    bounds.kv_groups = 2;
    bounds.window = 5;
    Reset(bounds);
  }
  // Slot 0 has computed 9 tokens: its next row sees positions 5 to 9, blocks 1 and 2 of its table.
  void ComputeNine() {
    StepPlan plan = NextPlan();
    plan.starts = {Start(0, 9)};
    plan.block_ops = {Append(0, 0), Append(0, 1), Append(0, 2)};
    for (std::uint32_t i = 0; i < 3; ++i) plan.block_ops.push_back(Append(0, i, 1));
    plan.segments = {Prompt(0, 0, 9)};
    Run(plan, 9);
  }
  StepPlan FourInBlock(std::uint32_t window_block) {
    StepPlan plan = WholePrompt(1, 5);
    plan.block_ops.push_back(Append(1, window_block, 1));
    return plan;
  }
};

TEST_F(WindowTables, ABlockBeforeTheWindowMayGoToAnotherSequence) {
  ComputeNine();
  StepPlan plan = FourInBlock(0);
  plan.segments.push_back(Decode(0));
  ASSERT_EQ(Message(checker_.Check(plan)), "");
}

TEST_F(WindowTables, ABlockInTheWindowMayNot) {
  ComputeNine();
  ExpectRefused(FourInBlock(1), "blocks that no other table holds");
}

TEST_F(WindowTables, ASequenceMayGetItsOwnBlockAgain) {
  ComputeNine();
  StepPlan plan = NextPlan();
  plan.block_ops = {Append(0, 3), Append(0, 0, 1)};
  plan.segments = {Decode(0)};
  Run(plan, 10);
  StepPlan again = NextPlan();
  again.block_ops = {Append(0, 0, 1)};
  ExpectRefused(again, "a block that the table does not hold yet");
}

TEST_F(WindowTables, EntriesBeforeTheWindowNeedNoBlock) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 10)};
  plan.starts[0].cached_length = 9;
  plan.block_ops = {Append(0, 0),    Append(0, 1),   Append(0, 2), Append(0, kNoBlock.value(), 1),
                    Append(0, 1, 1), Append(0, 2, 1)};
  plan.segments = {Prompt(0, 9, 1)};
  Run(plan, 10);
}

TEST_F(WindowTables, EntriesInTheWindowNeedABlock) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 10)};
  plan.starts[0].cached_length = 8;  // position 4 is seen, which is in block 1
  plan.block_ops = {Append(0, kNoBlock.value(), 1), Append(0, kNoBlock.value(), 1)};
  ExpectRefused(plan, "`block_ops.dst`");
}

TEST_F(WindowTables, LayersWithoutAWindowNeedEveryBlock) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 10)};
  plan.starts[0].cached_length = 9;
  plan.block_ops = {Append(0, kNoBlock.value())};
  ExpectRefused(plan, "`block_ops.dst`");
}

TEST_F(WindowTables, EachGroupHasItsOwnIds) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(0, 4)};
  plan.block_ops = {Append(0, 7), Append(0, 3, 1)};
  ExpectRefused(plan, "below 3");
}

TEST_F(WindowTables, EveryGroupNeedsABlockForEachRow) {
  ExpectRefused(WholePrompt(0, 0), "blocks of the table");
}

TEST_F(WindowTables, AFailedSequenceLeavesItsWindowToo) {
  ComputeNine();
  StepPlan plan = NextPlan();
  plan.block_ops = {Append(0, 3), Append(0, 0, 1)};
  plan.segments = {Decode(0)};
  for (std::uint32_t committed = 10; committed < 12; ++committed) {
    Run(plan, committed);
    plan = Decodes(0);
  }
  Run(plan, 11, ShardFinish::kError);  // of the row at position 11; the next one would see 8 to 12
  StepPlan other = FourInBlock(1);
  ASSERT_EQ(Message(checker_.Check(other)), "");
}

}  // namespace
}  // namespace penstock::shard
