#include "shard/executor/slot_table.h"

#include <gmock/gmock.h>

namespace penstock::shard {
namespace {

using testing::ElementsAre;

class SlotTableTest : public testing::Test {
 protected:
  SlotTableTest() : table_(2, 1) {}

  RankSequence& Started(std::vector<TokenId> prompt) {
    StepPlan plan;
    SequenceStart start;
    start.slot = SlotId(1);
    start.prompt = std::move(prompt);
    start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
    plan.starts = {start};
    table_.Apply(plan);
    return table_.at(SlotId(1));
  }

  SlotTable table_;
  const std::vector<TokenId> eos_ = {9};
};

TEST_F(SlotTableTest, BlocksAreAppendedInOrder) {
  RankSequence& sequence = Started({1});
  StepPlan plan;
  for (std::uint32_t block : {7u, 3u}) {
    BlockOp op;
    op.slot = SlotId(1);
    op.dst = BlockId(block);
    plan.block_ops.push_back(op);
  }
  table_.Apply(plan);
  EXPECT_THAT(sequence.tables[0], ElementsAre(BlockId(7), BlockId(3)));
}

TEST_F(SlotTableTest, OutputPositionsContinueAfterARestart) {
  RankSequence& sequence = Started({1, 2, 3});
  sequence.start.sample_index_base = 2;
  EXPECT_EQ(sequence.NextOutputIndex(), 2u);
  AcceptToken(sequence, 4, eos_);
  EXPECT_EQ(sequence.NextOutputIndex(), 3u);
}

TEST_F(SlotTableTest, LengthComesBeforeEosBeforeStop) {
  RankSequence& sequence = Started({1});
  sequence.start.stop_token_ids = {9, 8};
  sequence.start.max_new_tokens = 1;
  AcceptToken(sequence, 9, eos_);
  EXPECT_EQ(sequence.finish, ShardFinish::kLength);
  sequence.start.max_new_tokens = 3;
  AcceptToken(sequence, 9, eos_);
  EXPECT_EQ(sequence.finish, ShardFinish::kEos);
  sequence.start.max_new_tokens = 0;
  AcceptToken(sequence, 8, eos_);
  EXPECT_EQ(sequence.finish, ShardFinish::kStopToken);
}

TEST_F(SlotTableTest, EndTokensAreMaskedUntilMinNewTokens) {
  RankSequence& sequence = Started({1});
  sequence.start.min_new_tokens = 1;
  sequence.start.stop_token_ids = {8};
  std::vector<TokenId> masked = {1, 2, 3};
  CollectMasked(sequence, eos_, masked);
  EXPECT_THAT(masked, ElementsAre(9, 8));
  AcceptToken(sequence, 5, eos_);
  CollectMasked(sequence, eos_, masked);
  EXPECT_THAT(masked, ElementsAre());
}

TEST_F(SlotTableTest, TheLastTokenOfABadWordIsMaskedAfterTheOthers) {
  RankSequence& sequence = Started({5});
  sequence.start.sampling.bad_words = {{4}, {6, 7}, {5, 6, 8}, {1, 2, 3, 4, 5, 6, 7}};
  std::vector<TokenId> masked;
  CollectMasked(sequence, eos_, masked);
  EXPECT_THAT(masked, ElementsAre(4));
  AcceptToken(sequence, 6, eos_);
  CollectMasked(sequence, eos_, masked);
  EXPECT_THAT(masked, ElementsAre(4, 7, 8));  // a prompt counts like the output
}

}  // namespace
}  // namespace penstock::shard
