#include "shard/sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "shard/sampling/philox.h"

namespace penstock::shard {
namespace {

SampledToken MustSample(std::vector<float> logits, const SamplingParams& params,
                        const LogprobRequest& logprobs = {}, std::uint32_t position = 0) {
  Sampler sampler;
  auto sampled = sampler.Sample(logits, {params, logprobs, nullptr, {}, position});
  EXPECT_TRUE(sampled.ok()) << sampled.status();
  return sampled.ok() ? *sampled : SampledToken{};
}

TEST(Sampler, GreedyTakesTheLowestIdOfATie) { EXPECT_EQ(MustSample({1, 7, 7, 3}, {}).token, 1); }

TEST(Sampler, TheSameSeedAndPositionGiveTheSameToken) {
  SamplingParams params;
  params.do_sample = true;
  params.seed = 99;
  const std::vector<float> logits(1000, 0.0f);
  EXPECT_EQ(MustSample(logits, params, {}, 3).token, MustSample(logits, params, {}, 3).token);
  EXPECT_NE(MustSample(logits, params, {}, 3).token, MustSample(logits, params, {}, 4).token);
}

// Even if the division overflows.
TEST(Sampler, ATinyTemperatureIsGreedyAndSoAreItsLogprobs) {
  SamplingParams params;
  params.do_sample = true;
  const std::vector<float> logits = {-30.0f, 1.0f, 25.0f, 24.9f};
  for (const float temperature : {1e-3f, 1e-37f, 1e-38f, 1e-45f}) {
    params.temperature = temperature;
    const auto sampled = MustSample(logits, params, {LogprobRequest::Kind::kProcessed, 0, false});
    EXPECT_EQ(sampled.token, 2) << temperature;
    EXPECT_EQ(sampled.logprob, 0.0f) << temperature;
  }
}

// At any temperature.
TEST(Sampler, AnExtremeRepetitionPenaltyGivesAToken) {
  constexpr float kGreatest = std::numeric_limits<float>::max();
  const std::vector<float> logits = {-30.0f, 2400.0f, 2500.0f, 2550.0f};
  TokenHistory history;
  history.AddPrompt(std::vector<TokenId>{0, 1, 2});
  const LogprobRequest logprobs{LogprobRequest::Kind::kProcessed, 0, false};
  for (const float penalty : {1e-45f, 1e-38f, 1e-30f, 1e-6f, 1e6f, 1e38f, kGreatest}) {
    for (const float temperature : {1.0f, 1e-15f, 1e-45f}) {
      for (const bool do_sample : {false, true}) {
        SCOPED_TRACE(testing::Message() << penalty << " at temperature " << temperature);
        SamplingParams params;
        params.repetition_penalty = penalty;
        params.temperature = temperature;
        params.do_sample = do_sample;
        std::vector<float> row = logits;
        const auto sampled = Sampler().Sample(row, {params, logprobs, &history, {}, 0});
        ASSERT_TRUE(sampled.ok()) << sampled.status();
        EXPECT_EQ(sampled->token, penalty < 1 ? 2 : 3);
        EXPECT_NEAR(sampled->logprob, 0.0f, 1e-4f);
      }
    }
  }
}

// Golden tokens: a change of the seeding would break the stored seeds of users.
TEST(Sampler, SeededTokensAreStableAcrossVersions) {
  SamplingParams params;
  params.do_sample = true;
  params.seed = 42;
  const std::vector<float> logits(512, 0.0f);
  std::vector<TokenId> tokens;
  for (std::uint32_t position = 0; position < 4; ++position) {
    tokens.push_back(MustSample(logits, params, {}, position).token);
  }
  EXPECT_EQ(tokens, (std::vector<TokenId>{296, 469, 500, 369}));
}

// Chi-square over 100,000 positions; the limit is the 99.99 % quantile for 5 degrees of freedom.
TEST(Sampler, DrawsFromTheExactDistribution) {
  const std::vector<float> probabilities = {0.4f, 0.25f, 0.15f, 0.1f, 0.07f, 0.03f};
  std::vector<float> logits;
  for (float p : probabilities) logits.push_back(std::log(p));
  SamplingParams params;
  params.do_sample = true;
  params.seed = 7;
  const int draws = 100'000;
  std::vector<int> counts(probabilities.size());
  for (int i = 0; i < draws; ++i) {
    const auto position = static_cast<std::uint32_t>(i);
    ++counts[static_cast<std::size_t>(MustSample(logits, params, {}, position).token)];
  }
  double chi_square = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = draws * static_cast<double>(probabilities[i]);
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 25.7);
}

// The shortcut that avoids logarithms must not change the result.
TEST(Sampler, TheShortcutGivesTheTokenOfTheFullRace) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    std::normal_distribution<float> draw(0.0f, 3.0f);
    std::vector<float> logits(2000);
    for (float& logit : logits) logit = draw(engine);
    const float max_logit = *std::max_element(logits.begin(), logits.end());
    std::size_t winner = 0;
    double best = -1;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double u = TokenNoise(seed, 0, 5).Uniform(static_cast<std::uint32_t>(i));
      const double score = std::exp(logits[i] - max_logit) / -std::log(u);
      if (score > best) best = score, winner = i;
    }
    SamplingParams params;
    params.do_sample = true;
    params.seed = seed;
    EXPECT_EQ(MustSample(logits, params, {}, 5).token, static_cast<TokenId>(winner));
  }
}

TEST(Sampler, RawLogprobsIgnoreProcessorsAndProcessedOnesDoNot) {
  SamplingParams params;
  params.logit_bias = {{0, -100.0f}};
  const std::vector<float> logits = {std::log(0.75f), std::log(0.25f)};
  const auto raw = MustSample(logits, params, {LogprobRequest::Kind::kRaw, 2, false});
  EXPECT_EQ(raw.token, 1);
  EXPECT_NEAR(raw.logprob, std::log(0.25f), 1e-6);
  ASSERT_EQ(raw.alternatives.size(), 2u);
  EXPECT_EQ(raw.alternatives[0].token, 0);
  EXPECT_NEAR(raw.alternatives[0].logprob, std::log(0.75f), 1e-6);
  const auto processed = MustSample(logits, params, {LogprobRequest::Kind::kProcessed, 1, false});
  EXPECT_NEAR(processed.logprob, 0.0f, 1e-6);
  EXPECT_EQ(processed.alternatives[0].token, 1);
}

TEST(Sampler, ProcessedLogprobsOfADrawAreOverTheKeptTokens) {
  SamplingParams params;
  params.do_sample = true;
  params.top_k = 1;
  const auto sampled =
      MustSample({1.0f, 2.0f, 1.5f}, params, {LogprobRequest::Kind::kProcessed, 5, false});
  EXPECT_EQ(sampled.token, 1);
  EXPECT_EQ(sampled.logprob, 0.0f);
  EXPECT_EQ(sampled.alternatives.size(), 1u);
}

TEST(Sampler, ARowWithoutAnAllowedTokenIsAnError) {
  Sampler sampler;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (std::vector<float> row : {std::vector<float>{1, nan, 2}, {-inf, -inf}, {inf, 1}}) {
    EXPECT_EQ(sampler.Sample(row, {{}, {}, nullptr, {}, 0}).status().code(),
              absl::StatusCode::kInternal);
  }
}

TEST(Sampler, ReportsThePromptTokenItsRankAndTheMostProbable) {
  Sampler sampler;
  const std::vector<float> logits = {2, 3, 2, 1};
  const double log_mass = std::log(2 * std::exp(2.0) + std::exp(3.0) + std::exp(1.0));
  const auto plain = sampler.ReportPrompt(logits, 0, std::nullopt);
  EXPECT_NEAR(plain.logprob, 2 - log_mass, 1e-6);
  EXPECT_EQ(plain.alternatives, PromptAlternatives());
  const auto report = sampler.ReportPrompt(logits, 2, 2);
  EXPECT_EQ(report.alternatives.rank, 2u);  // tokens of the same logit share it
  ASSERT_EQ(report.alternatives.top.size(), 2u);
  EXPECT_EQ(report.alternatives.top[0].token, 1);
  EXPECT_EQ(report.alternatives.top[1].token, 0);
  EXPECT_EQ(report.alternatives.top[1].logprob, report.logprob);
}

}  // namespace
}  // namespace penstock::shard
