// Plans for the padded KV layout, where decodes read padded KV rows.
#include "shard/service/row_rules.h"

#include <gmock/gmock.h>

#include "tests/unit/shard/executor/plans.h"
#include "tests/unit/shard/service/plan_checker_fixture.h"

namespace penstock::shard {
namespace {

using plans::Append;
using plans::Decode;

// 12 cells. Slots 0 and 1 have computed prompts of four tokens in blocks 0 and 1.
class RowRulesTest : public PlanCheckerTest {
 protected:
  RowRulesTest() {
    PlanBounds bounds = Bounds();
    bounds.cells = 12;
    Reset(bounds);
    Run(WholePrompt(0, 0), 4);
    Run(WholePrompt(1, 1), 4);
  }

  // A decode of slot 0 in a row of this width.
  StepPlan DecodeInRow(std::uint32_t width) {
    StepPlan plan = Decodes(0);
    plan.groups = {{.segments = {0}, .rows = {SlotId(0)}, .width = width}};
    return plan;
  }
};

TEST_F(RowRulesTest, ASequenceInARowNeedsNoBlocks) {
  Run(DecodeInRow(6), 5);
  StepPlan plan = DecodeInRow(6);
  plan.starts = {Start(2, 4)};
  plan.block_ops = {Append(2, 0)};  // the block that slot 0 had
  plan.segments.push_back(plans::Prompt(2, 0, 4));
  plan.groups.push_back({.segments = {1}});
  EXPECT_EQ(Message(checker_.Check(plan)), "");
}

TEST_F(RowRulesTest, RowsFitIntoTheCells) {
  StepPlan plan = DecodeInRow(7);
  plan.groups[0].rows.push_back(SlotId(1));
  ExpectRefused(plan,
                "`groups.width` must be rows * width of all groups at most the 12 cells. "
                "Given: 14");
}

TEST_F(RowRulesTest, ARowIsWideEnoughForWhatIsWritten) {
  ExpectRefused(DecodeInRow(3), "at least the 4 committed positions of slot 0");
}

TEST_F(RowRulesTest, ADecodeWritesWithinTheWidthOfItsRow) {
  ExpectRefused(DecodeInRow(4), "within the width 4 of its row from committed length 4 (slot 0)");
}

TEST_F(RowRulesTest, ARowBelongsToOneGroup) {
  StepPlan plan = DecodeInRow(5);
  plan.groups.push_back({.rows = {SlotId(0)}, .width = 5});
  ExpectRefused(plan, "`groups.rows` must be a row of one group only");
}

TEST_F(RowRulesTest, OnlyAWholePromptMovesIntoARow) {
  StepPlan plan = NextPlan();
  plan.starts = {Start(2, 8)};
  plan.block_ops = {Append(2, 2)};
  plan.segments = {plans::Prompt(2, 0, 4)};
  plan.segments[0].logits = Segment::Logits::kNone;
  plan.groups = {{.segments = {0}, .rows = {SlotId(2)}, .width = 8}};
  ExpectRefused(plan, "a slot whose whole prompt was computed");
}

TEST_F(RowRulesTest, ADecodeIsInTheGroupOfItsRow) {
  StepPlan plan = DecodeInRow(6);
  plan.groups[0].segments = {};
  plan.groups.push_back({.segments = {0}});
  ExpectRefused(plan, "`groups.segments` must be the segment of a row of its group (slot 0)");
}

TEST_F(RowRulesTest, ALostRowDoesNotComeBack) {
  Run(DecodeInRow(6), 5);
  StepPlan without = Decodes(1);
  without.block_ops = {Append(1, 2)};
  Run(without, 5);
  ExpectRefused(DecodeInRow(6), "a slot that never left the row store");
}

TEST_F(RowRulesTest, ASlotStartsAgainWithoutARow) {
  Run(DecodeInRow(6), 5);
  StepPlan plan = WholePrompt(0, 3);
  plan.ends = {SlotId(0)};
  Run(plan, 4);
  Run(DecodeInRow(6), 5);
}

}  // namespace
}  // namespace penstock::shard
