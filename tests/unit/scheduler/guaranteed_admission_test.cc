#include "scheduler/admission/guaranteed_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::scheduler {
namespace {

using ::testing::HasSubstr;

class GuaranteedAdmissionTest : public ::testing::Test {
 protected:
  GuaranteedAdmissionTest() {
    capacity_.blocks = 10;
    capacity_.block_size = 16;
    capacity_.slots = 4;
    capacity_.max_sequence_length = 1000;
    capacity_.max_step_tokens = 64;
    config_.max_step_tokens = 64;
    state_.blocks_available = 10;
    state_.slots_available = 4;
  }

  static Arrival Request(std::uint32_t prompt, std::uint32_t max_new) {
    Arrival arrival;
    arrival.prompt.resize(prompt);
    arrival.max_new_tokens = max_new;
    return arrival;
  }
  std::optional<Shortage> Check(const Arrival& arrival) const {
    Work work;
    work.request = arrival;
    return GuaranteedAdmission(config_, capacity_).Check(work, state_);
  }
  std::string WhyNever(const Arrival& arrival) const {
    const auto why = GuaranteedAdmission(config_, capacity_).WhyNeverFits(arrival);
    return why ? why->message : "";
  }

  Config config_;
  GroupCapacity capacity_;
  GroupState state_;
};

TEST_F(GuaranteedAdmissionTest, TheWorstCaseIsRoundedUpToBlocks) {
  const GuaranteedAdmission admission(config_, capacity_);
  Work work;
  work.request = Request(16, 16);
  EXPECT_EQ(admission.BlocksToReserve(work), 2u);
  work.request = Request(16, 17);
  EXPECT_EQ(admission.BlocksToReserve(work), 3u);
}

TEST_F(GuaranteedAdmissionTest, ARequestAsLargeAsThePoolFits) {
  EXPECT_EQ(WhyNever(Request(100, 60)), "");
  EXPECT_EQ(Check(Request(100, 60)), std::nullopt);
}

TEST_F(GuaranteedAdmissionTest, ARequestThatCanNeverFitIsRefusedWithNumbers) {
  EXPECT_EQ(WhyNever(Request(100, 61)),
            "`inputs` tokens + `max_new_tokens` must be <= 160 (a KV cache of 10 blocks of 16 "
            "tokens). Given: 100 `inputs` tokens and 61 `max_new_tokens`");
  config_.max_batch_total_tokens = 99;
  EXPECT_THAT(WhyNever(Request(60, 40)), HasSubstr("<= 99 (max-batch-total-tokens)"));
  capacity_.max_sequence_length = 50;
  EXPECT_THAT(WhyNever(Request(31, 20)), HasSubstr("<= 50 (the longest sequence"));
}

TEST_F(GuaranteedAdmissionTest, AWholePromptMustFitOneStep) {
  config_.prefill = Prefill::kWhole;
  EXPECT_EQ(WhyNever(Request(64, 1)), "");
  EXPECT_THAT(WhyNever(Request(65, 1)), HasSubstr("`inputs` must have <= 64 tokens"));
  config_.max_batch_prefill_tokens = 20;
  EXPECT_THAT(WhyNever(Request(21, 1)), HasSubstr("<= 20 tokens"));
}

TEST_F(GuaranteedAdmissionTest, AShortageHasItsBudgetAndAmounts) {
  state_.blocks_available = 3;
  const auto blocks = Check(Request(40, 24));
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->budget, Budget::kBlocks);
  EXPECT_EQ(blocks->needed, 4u);
  EXPECT_EQ(blocks->available, 3u);

  state_.slots_available = 0;
  EXPECT_EQ(Check(Request(1, 1))->budget, Budget::kSlots);

  state_ = {.blocks_available = 10, .slots_available = 4, .running = 2, .reserved_tokens = 80};
  config_.max_batch_total_tokens = 100;
  const auto tokens = Check(Request(20, 1));
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->budget, Budget::kTotalTokens);
  EXPECT_EQ(tokens->needed, 21u);
  EXPECT_EQ(tokens->available, 20u);

  config_.max_batch_size = 2;
  EXPECT_EQ(Check(Request(1, 1))->budget, Budget::kBatchSize);
}

TEST_F(GuaranteedAdmissionTest, EveryRunningSequenceGetsItsRowsInEveryStep) {
  config_.max_step_tokens = 3;
  state_.running = state_.decode_rows = 2;
  EXPECT_EQ(Check(Request(1, 1)), std::nullopt);
  state_.running = state_.decode_rows = 3;
  EXPECT_EQ(Check(Request(1, 1))->budget, Budget::kStepTokens);
}

TEST_F(GuaranteedAdmissionTest, CandidatesOfContrastiveSearchAreRows) {
  config_.max_step_tokens = 9;
  capacity_.max_candidates = 8;
  Arrival contrastive = Request(1, 1);
  contrastive.sampling.penalty_alpha = 0.6f;
  contrastive.sampling.top_k = 4;
  state_.running = 2;
  state_.decode_rows = 5;
  EXPECT_EQ(Check(contrastive), std::nullopt);
  state_.decode_rows = 6;
  const auto shortage = Check(contrastive);
  ASSERT_TRUE(shortage.has_value());
  EXPECT_EQ(shortage->budget, Budget::kStepTokens);
  EXPECT_EQ(shortage->needed, 10u);
}

TEST_F(GuaranteedAdmissionTest, ContrastiveSearchIsRefusedIfTheGroupDoesNotOfferIt) {
  Arrival contrastive = Request(1, 1);
  contrastive.sampling.penalty_alpha = 0.6f;
  contrastive.sampling.top_k = 4;
  EXPECT_THAT(WhyNever(contrastive), HasSubstr("contrastive-search"));
  capacity_.max_candidates = 3;
  EXPECT_THAT(WhyNever(contrastive), HasSubstr("`top_k` must be <= 3"));
  capacity_.max_candidates = 4;
  EXPECT_EQ(WhyNever(contrastive), "");
}

TEST_F(GuaranteedAdmissionTest, WithoutBatchingRequestsRunAlone) {
  config_.batching = Batching::kNone;
  EXPECT_EQ(Check(Request(1, 1)), std::nullopt);
  state_.running = 1;
  EXPECT_EQ(Check(Request(1, 1))->budget, Budget::kBatchSize);
}

}  // namespace
}  // namespace penstock::scheduler
