#include "scheduler/step/padded_layout.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/harness.h"

namespace penstock::scheduler {
namespace {

// A step is composed, but has nothing to send. Then the same rows are composed again.
TEST(PaddedLayoutTest, ANewPartitionIsToldWithTheNextStepThatIsSent) {
  GroupUp up;
  up.capacity.blocks = 64;
  up.capacity.block_size = 64;
  up.capacity.slots = 2;
  up.capacity.padded_attention = true;
  SequenceTable table(up.capacity, false);
  PaddedLayout layout(Config{}, up, table);
  StepDraft draft(Prefill::kChunked);
  const auto compose = [&] {
    Outputs out;
    draft.Begin({16, 16}, {});
    layout.BeginStep();
    for (auto& [id, sequence] : table.all()) {
      const std::uint32_t length = sequence.request.max_new_tokens;
      draft.composer().AddDecode(sequence.slot, 1, length);
      layout.AddDecode(sequence, length, 1, draft);
    }
    layout.SplitDecodes(CostModel(Calibration{}), draft, Time{}, out);
    return out;
  };
  for (const std::uint32_t length : {10u, 2000u}) {
    Work work;
    work.request.request = RequestId(length);
    work.request.prompt = {7};
    work.request.max_new_tokens = length;
    table.Add(std::move(work), SequenceId(length), {1, 0, length}, {});
  }
  EXPECT_EQ(All(compose(), DecisionKind::kSplit).size(), 2u);
  EXPECT_EQ(All(compose(), DecisionKind::kSplit).size(), 0u);
  StepInfo told;
  layout.Describe(told);
  EXPECT_TRUE(told.resplit);
  EXPECT_EQ(told.decode_parts, 2u);
  StepInfo later;
  layout.Describe(later);
  EXPECT_FALSE(later.resplit);
}

}  // namespace
}  // namespace penstock::scheduler
