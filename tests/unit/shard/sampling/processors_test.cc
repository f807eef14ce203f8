#include "shard/sampling/processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

std::vector<float> Process(const SamplingParams& params, std::vector<float> logits,
                           const TokenHistory* history = nullptr,
                           std::vector<TokenId> masked = {}) {
  ProcessLogits(params, history, masked, logits);
  return logits;
}

TEST(Processors, NeutralParametersChangeNothing) {
  EXPECT_FALSE(NeedsHistory(SamplingParams{}));
  EXPECT_THAT(Process({}, {1, -2, 3}), ElementsAre(1, -2, 3));
}

TEST(Processors, RepetitionPenaltyCountsPromptAndOutputOncePerToken) {
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  TokenHistory history;
  history.AddPrompt(std::vector<TokenId>{0, 0, 0});
  history.AddGenerated(1);
  history.AddGenerated(1);
  EXPECT_TRUE(NeedsHistory(params));
  EXPECT_THAT(Process(params, {4, -4, 4}, &history), ElementsAre(2, -8, 4));
}

TEST(Processors, FrequencyAndPresenceCountGeneratedTokensOnly) {
  SamplingParams params;
  params.frequency_penalty = 0.5f;
  params.presence_penalty = 0.25f;
  TokenHistory history;
  history.AddPrompt(std::vector<TokenId>{0});
  history.AddGenerated(1);
  history.AddGenerated(1);
  EXPECT_THAT(Process(params, {1, 1, 1}, &history),
              ElementsAre(FloatEq(1), FloatEq(1 - 1.0f - 0.25f), FloatEq(1)));
}

TEST(Processors, BiasComesBeforeTheRepetitionPenalty) {
  SamplingParams params;
  params.repetition_penalty = 2.0f;
  params.logit_bias = {{0, 3.0f}, {99, 1.0f}};  // 99 lies outside the row
  TokenHistory history;
  history.AddPrompt(std::vector<TokenId>{0, 50});
  EXPECT_THAT(Process(params, {1, 1}, &history), ElementsAre(2, 1));
}

TEST(Processors, MaskedTokensCannotBeSampled) {
  const auto row = Process({}, {5, 1}, nullptr, {0, -1, 77});
  EXPECT_TRUE(std::isinf(row[0]) && row[0] < 0);
  EXPECT_EQ(row[1], 1);
}

}  // namespace
}  // namespace penstock::shard
