#include "scheduler/step/step_composer.h"

#include <gtest/gtest.h>

namespace penstock::scheduler {
namespace {

StepComposer Make(std::uint32_t step, std::uint32_t prefill, Prefill mode = Prefill::kChunked) {
  return StepComposer({step, prefill}, mode);
}

TEST(StepComposer, PrefillGetsWhatDecodesLeave) {
  StepComposer step = Make(10, 10);
  for (std::uint32_t slot = 0; slot < 4; ++slot) EXPECT_EQ(step.AddDecode(SlotId(slot), 1, 10), 1u);
  EXPECT_EQ(step.AddPrefill({SlotId(4), 0, 100, false}).count, 6u);
  EXPECT_EQ(step.AddPrefill({SlotId(5), 0, 1, false}).count, 0u);
  EXPECT_EQ(step.decode_rows(), 4u);
  EXPECT_EQ(step.prefill_tokens(), 6u);
  EXPECT_EQ(step.segments().size(), 5u);
}

TEST(StepComposer, ThePrefillBudgetBoundsPromptsOnly) {
  StepComposer step = Make(10, 3);
  EXPECT_EQ(step.AddDecode(SlotId(0), 5, 10), 5u);
  EXPECT_EQ(step.Fit(0, 6).short_of, Budget::kPrefillTokens);
  EXPECT_EQ(step.AddPrefill({SlotId(1), 0, 4, false}).count, 3u);
  EXPECT_EQ(step.Fit(0, 1).count, 0u);
}

TEST(StepComposer, AWholePromptFitsOrWaits) {
  StepComposer step = Make(10, 10, Prefill::kWhole);
  EXPECT_EQ(step.AddPrefill({SlotId(0), 0, 11, false}).count, 0u);
  EXPECT_TRUE(step.empty());
  EXPECT_EQ(step.AddPrefill({SlotId(0), 0, 10, false}).count, 10u);
}

TEST(StepComposer, OnlyTheLastChunkSamples) {
  StepComposer step = Make(10, 10);
  step.AddPrefill({SlotId(0), 4, 3, false});
  step.AddPrefill({SlotId(1), 0, 3, true});
  step.AddPrefill({SlotId(2), 0, 9, false});
  const std::vector<Segment> segments = step.segments();
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].logits, Segment::Logits::kLast);
  EXPECT_EQ(segments[0].first, 4u);
  EXPECT_EQ(segments[1].logits, Segment::Logits::kAll) << "prompt logprobs need every row";
  EXPECT_EQ(segments[2].logits, Segment::Logits::kNone);
  EXPECT_EQ(segments[2].count, 4u);
}

TEST(StepComposer, TheTighterOfServerAndGroupBoundsTheStep) {
  Config config;
  config.max_step_tokens = 512;
  config.max_batch_prefill_tokens = 300;
  EXPECT_EQ(MakeStepBudget(config, 400).step_tokens, 400u);
  EXPECT_EQ(MakeStepBudget(config, 400).prefill_tokens, 300u);
  EXPECT_EQ(MakeStepBudget(config, 200).prefill_tokens, 200u);
  config.max_batch_prefill_tokens = 0;
  EXPECT_EQ(MakeStepBudget(config, 1000).prefill_tokens, 512u);
}

// A token takes one millisecond.
CostModel MillisecondTokens() {
  Calibration calibration;
  for (const std::uint32_t tokens : {64u, 128u, 256u, 512u}) {
    calibration.samples.push_back({tokens, 0, 0, std::chrono::milliseconds(tokens)});
    calibration.samples.push_back({0, tokens, 1, std::chrono::milliseconds(tokens)});
  }
  return CostModel(calibration);
}

StepComposer Timed(const CostModel& cost, int target_ms, Prefill mode = Prefill::kChunked) {
  return StepComposer({1000, 1000}, mode, {&cost, std::chrono::milliseconds(target_ms)});
}

TEST(StepComposer, TheTargetTimeBoundsPromptsBesideDecodes) {
  const CostModel cost = MillisecondTokens();
  StepComposer step = Timed(cost, 300);
  step.AddDecode(SlotId(0), 100, 1);
  const PrefillFit fit = step.AddPrefill({SlotId(1), 0, 1000, false});
  EXPECT_NEAR(fit.count, 200, 10);
  EXPECT_EQ(fit.short_of, Budget::kStepTime);
  EXPECT_LE(cost.Predict(step.shape()), std::chrono::milliseconds(300));
  EXPECT_EQ(step.AddPrefill({SlotId(2), 0, 10, false}).count, 0u);
}

TEST(StepComposer, WithoutDecodesTheTargetTimeDoesNotApply) {
  const CostModel cost = MillisecondTokens();
  StepComposer step = Timed(cost, 10);
  EXPECT_EQ(step.AddPrefill({SlotId(1), 0, 900, false}).count, 900u);
}

TEST(StepComposer, ATargetTimeThatFitsAFewTokensIsKept) {
  const CostModel cost = MillisecondTokens();
  StepComposer step = Timed(cost, 110);
  step.AddDecode(SlotId(0), 100, 1);
  EXPECT_NEAR(step.AddPrefill({SlotId(1), 0, 900, false}).count, 10, 4);
  EXPECT_LE(cost.Predict(step.shape()), std::chrono::milliseconds(110));
}

TEST(StepComposer, DecodesThatTakeTheTargetLeavePromptsAQuarterOfTheirTime) {
  const CostModel cost = MillisecondTokens();
  for (const int target_ms : {10, 100}) {
    StepComposer step = Timed(cost, target_ms);
    step.AddDecode(SlotId(0), 100, 1);
    const Duration alone = cost.Predict(step.shape());
    EXPECT_EQ(step.AddPrefill({SlotId(1), 0, 10, false}).count, 10u);
    const PrefillFit fit = step.AddPrefill({SlotId(2), 0, 900, false});
    EXPECT_NEAR(fit.count, 15, 4);
    EXPECT_EQ(fit.short_of, Budget::kStepTime);
    EXPECT_LE(cost.Predict(step.shape()), alone + alone / 4);
    EXPECT_EQ(step.AddPrefill({SlotId(3), 0, 1, false}).count, 0u);
  }
}

TEST(StepComposer, PromptsAlwaysProgress) {
  const CostModel cost = MillisecondTokens();
  StepComposer step = Timed(cost, 1);
  step.AddDecode(SlotId(0), 2, 1);
  EXPECT_EQ(step.AddPrefill({SlotId(1), 0, 3, false}).count, 3u);
  EXPECT_EQ(step.AddPrefill({SlotId(2), 0, 900, false}).count, kMinPrefillTokens - 3);
  EXPECT_EQ(step.AddPrefill({SlotId(3), 0, 1, false}).count, 0u);
}

TEST(StepComposer, AWholePromptIsNotBoundByTime) {
  const CostModel cost = MillisecondTokens();
  StepComposer step = Timed(cost, 10, Prefill::kWhole);
  step.AddDecode(SlotId(0), 100, 1);
  EXPECT_EQ(step.AddPrefill({SlotId(1), 0, 900, false}).count, 900u);
}

}  // namespace
}  // namespace penstock::scheduler
