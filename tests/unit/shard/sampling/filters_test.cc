#include "shard/sampling/filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using Ids = std::vector<std::uint32_t>;

Ids Kept(const SamplingParams& params, const std::vector<float>& logits) {
  std::vector<Candidate> candidates;
  FilterCandidates(params, logits, candidates);
  Ids ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.token);
  return ids;
}

SamplingParams TopK(std::uint32_t k) {
  SamplingParams params;
  params.top_k = k;
  return params;
}

SamplingParams TopP(float p) {
  SamplingParams params;
  params.top_p = p;
  return params;
}

std::vector<float> Logs(std::vector<float> probabilities) {
  for (float& p : probabilities) p = std::log(p);
  return probabilities;
}

TEST(Filters, TopKKeepsAllTiesAtTheBorder) {
  EXPECT_THAT(Kept(TopK(2), {1, 3, 2, 2, 0}), ElementsAre(1, 2, 3));
  EXPECT_THAT(Kept(TopK(1), {1, 3, 2}), ElementsAre(1));
  EXPECT_EQ(Kept(TopK(50), {1, 3, 2}).size(), 3u) << "k above the vocabulary is clamped";
}

// Compares the search in blocks with a plain sort.
TEST(Filters, TopKOfALargeVocabularyIsThatOfASort) {
  std::mt19937 random(std::random_device{}());
  for (std::size_t size : {4096u, 5001u, 128256u}) {
    std::vector<float> logits(size);
    // Few distinct values, so that there are ties at the border, and tokens that are masked.
    for (float& logit : logits) logit = static_cast<float>(random() % 3000) * 0.01f;
    for (int i = 0; i < 100; ++i) {
      logits[random() % size] = -std::numeric_limits<float>::infinity();
    }
    for (std::uint32_t k : {1u, 2u, 50u, 63u, 64u, 65u, 1000u}) {
      SamplingParams params = TopK(k);
      params.temperature = 0.7f;
      std::vector<float> sorted = logits;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      Ids expected;
      for (std::size_t i = 0; i < size; ++i) {
        if (logits[i] / 0.7f >= sorted[k - 1] / 0.7f) {
          expected.push_back(static_cast<std::uint32_t>(i));
        }
      }
      ASSERT_EQ(Kept(params, logits), expected) << size << " tokens, k " << k;
    }
  }
}

TEST(Filters, TopPKeepsTheSmallestSetThatReachesTheMass) {
  const auto logits = Logs({0.1f, 0.5f, 0.25f, 0.15f});
  EXPECT_THAT(Kept(TopP(0.4f), logits), ElementsAre(1));
  EXPECT_THAT(Kept(TopP(0.7f), logits), ElementsAre(1, 2));
  EXPECT_THAT(Kept(TopP(0.85f), logits), ElementsAre(1, 2, 3));
  EXPECT_THAT(Kept(TopP(1e-6f), logits), ElementsAre(1))
      << "the most probable token is always kept";
}

TEST(Filters, TopPSplitsTiesByTokenId) {
  EXPECT_THAT(Kept(TopP(0.5f), {0, 0, 0, 0}), ElementsAre(0, 1));
}

TEST(Filters, TopPFollowsTopK) {
  SamplingParams params = TopK(2);
  params.top_p = 0.6f;  // of 0.5 and 0.25, renormalised: 0.667 and 0.333
  EXPECT_THAT(Kept(params, Logs({0.1f, 0.5f, 0.25f, 0.15f})), ElementsAre(1));
}

TEST(Filters, MinPIsARatioToTheBest) {
  SamplingParams params;
  params.min_p = 0.4f;
  EXPECT_THAT(Kept(params, Logs({0.1f, 0.5f, 0.25f, 0.15f})), ElementsAre(1, 2));
}

// The logits 4, 2, 0, 0 and a masked one: mean 1.5, deviation 1.66.
TEST(Filters, TopNSigmaCountsDeviationsFromTheLargestLogit) {
  const std::vector<float> logits = {0, 4, -std::numeric_limits<float>::infinity(), 2, 0};
  SamplingParams params;
  params.top_n_sigma = 1.0f;
  EXPECT_THAT(Kept(params, logits), ElementsAre(1));
  params.top_n_sigma = 1.3f;
  EXPECT_THAT(Kept(params, logits), ElementsAre(1, 3));
  params.temperature = 5.0f;  // changes nothing
  EXPECT_THAT(Kept(params, logits), ElementsAre(1, 3));
  params.top_n_sigma = 3.0f;
  EXPECT_THAT(Kept(params, logits), ElementsAre(0, 1, 3, 4));
}

TEST(Filters, TypicalMayDropTheMostProbableToken) {
  SamplingParams params;
  params.typical_p = 0.2f;
  // Entropy 1.49 nats: tokens of probability near exp(-1.49) = 0.22 are typical, 0.4 is not.
  const auto kept = Kept(params, Logs({0.4f, 0.22f, 0.2f, 0.1f, 0.08f}));
  EXPECT_THAT(kept, ElementsAre(1));
}

TEST(Filters, TemperatureDividesBeforeTheFilters) {
  SamplingParams params = TopP(0.6f);
  const auto logits = Logs({0.5f, 0.3f, 0.2f});
  EXPECT_EQ(Kept(params, logits).size(), 2u);
  params.temperature = 0.2f;
  EXPECT_EQ(Kept(params, logits).size(), 1u);
}

TEST(Filters, MaskedTokensAreNeverKept) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_THAT(Kept({}, {-inf, 1, -inf, 2}), ElementsAre(1, 3));
  EXPECT_TRUE(Kept({}, {-inf, -inf}).empty());
}

// Compared with HF's rule: in ascending order, drop while the cumulative sum is <= 1 - p.
Ids NaiveTopP(float p, const std::vector<float>& logits) {
  Ids order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return logits[a] != logits[b] ? logits[a] < logits[b] : a > b; });
  double mass = 0;
  for (float logit : logits) mass += std::exp(static_cast<double>(logit));
  double cumulative = 0;
  Ids kept;
  for (std::size_t i = 0; i < order.size(); ++i) {
    cumulative += std::exp(static_cast<double>(logits[order[i]])) / mass;
    if (cumulative > 1.0 - p || i + 1 == order.size()) kept.push_back(order[i]);
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

TEST(Filters, TopPEqualsTheNaiveRuleOnRandomRows) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 engine(seed);
    std::normal_distribution<float> draw(0.0f, 2.0f);
    std::vector<float> logits(1 + engine() % 3000);
    for (float& logit : logits) logit = draw(engine);
    const float p = 0.05f + 0.9f * static_cast<float>(engine() % 1000) / 1000.0f;
    const Ids ours = Kept(TopP(p), logits);
    const Ids naive = NaiveTopP(p, logits);
    // Float sums may move the border by one token in a long tail.
    EXPECT_LE(std::max(ours.size(), naive.size()) - std::min(ours.size(), naive.size()), 1u);
    EXPECT_TRUE(std::includes(ours.begin(), ours.end(), naive.begin(), naive.end()) ||
                std::includes(naive.begin(), naive.end(), ours.begin(), ours.end()));
  }
}

}  // namespace
}  // namespace penstock::shard
