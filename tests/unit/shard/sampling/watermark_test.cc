#include "shard/sampling/watermark.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "shard/sampling/sampler.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kVocabulary = 1000;

// Samples tokens from random logits, each row after the previous token.
std::vector<TokenId> Output(bool watermark, std::size_t length, unsigned seed) {
  std::mt19937 draw(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  SamplingParams params;
  params.do_sample = true;
  params.seed = seed;
  params.watermark = watermark;
  const LogprobRequest none;
  Sampler sampler;
  std::vector<TokenId> tokens = {7};
  std::vector<float> logits(kVocabulary);
  while (tokens.size() <= length) {
    for (float& logit : logits) logit = normal(draw);
    SampleRequest request{params, none, nullptr, {}, static_cast<std::uint32_t>(tokens.size())};
    request.before = tokens.back();
    tokens.push_back(sampler.Sample(logits, request)->token);
  }
  return tokens;
}

bool IsGreen(TokenId before, TokenId token, double gamma) {
  std::vector<float> logits(kVocabulary, 0.0f);
  FavourGreen({gamma, 2.0}, before, logits);
  return logits[static_cast<std::size_t>(token)] > 0;
}

// The detector of docs/api/watermark.md.
double Score(const std::vector<TokenId>& tokens, double gamma) {
  const auto scored = static_cast<double>(tokens.size() - 1);
  double green = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) green += IsGreen(tokens[i - 1], tokens[i], gamma);
  return (green - gamma * scored) / std::sqrt(scored * gamma * (1 - gamma));
}

// The numbers in docs/api/watermark.md, from an implementation in Python.
TEST(WatermarkTest, TheGreenTokensAreThoseOfTheDocument) {
  std::vector<TokenId> green;
  for (TokenId token = 0; token < 16; ++token) {
    if (IsGreen(42, token, 0.5)) green.push_back(token);
  }
  EXPECT_EQ(green, (std::vector<TokenId>{0, 2, 3, 5, 9, 10, 12, 14}));
}

TEST(WatermarkTest, ThePreviousTokenMakesAShareOfTheVocabularyGreen) {
  for (const double gamma : {0.25, 0.5}) {
    std::vector<float> one(20000, 0.0f), other(20000, 0.0f);
    FavourGreen({gamma, 2.0}, 11, one);
    FavourGreen({gamma, 2.0}, 12, other);
    int green = 0, both = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      green += one[i] == 2.0f;
      both += one[i] == 2.0f && other[i] == 2.0f;
    }
    EXPECT_NEAR(green / 20000.0, gamma, 0.015);
    EXPECT_NEAR(both / 20000.0, gamma * gamma, 0.015);
  }
}

TEST(WatermarkTest, TheDetectorFindsMarkedOutputs) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    EXPECT_GT(Score(Output(true, 200, seed), 0.5), 6) << "seed " << seed;
    EXPECT_LT(std::abs(Score(Output(false, 200, seed), 0.5)), 4) << "seed " << seed;
  }
}

TEST(TokenMaskTest, TokensOutsideAreMaskedAfterThePenaltiesAndBeforeTheFilters) {
  SamplingParams params;
  const LogprobRequest none;
  Sampler sampler;
  std::vector<float> logits(70, 0.0f);
  logits[3] = 9;
  logits[64] = 5;
  const std::vector<std::uint32_t> mask = {0, 0xffffffffu, 1};
  SampleRequest request{params, none, nullptr, {}, 0};
  request.allowed = mask;
  EXPECT_EQ(sampler.Sample(logits, request)->token, 64);
  EXPECT_EQ(logits[3], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(logits[40], 0.0f);
  EXPECT_EQ(logits[65], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(Contains(mask, 63));
  EXPECT_FALSE(Contains(mask, 65));
  EXPECT_FALSE(Contains(mask, 96));
  EXPECT_FALSE(Contains(mask, -1));
}

TEST(TokenMaskTest, AFailedGrammarRefusesWithItsOwnError) {
  SamplingParams params;
  const LogprobRequest none;
  Sampler sampler;
  std::vector<float> logits(8, 0.0f);
  SampleRequest request{params, none, nullptr, {}, 0};
  request.refusal = "grammar: too many states";
  EXPECT_EQ(sampler.Sample(logits, request).status().message(), "grammar: too many states");
}

}  // namespace
}  // namespace penstock::shard
