// The choice of experts for a row.
#include "shard/backend/cpu/experts/routing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock::shard::cpu {
namespace {

std::vector<Choice> ChoicesOf(const Routing& routing, const std::vector<float>& scores,
                              const float* choice_bias = nullptr) {
  std::vector<Choice> choices(routing.chosen);
  Router::Scratch scratch;
  Router(routing, choice_bias).Choose(scores.data(), scratch, choices);
  return choices;
}

std::vector<std::uint32_t> ExpertsOf(const std::vector<Choice>& choices) {
  std::vector<std::uint32_t> experts;
  for (const Choice& choice : choices) experts.push_back(choice.expert);
  return experts;
}

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

TEST(Router, WeightsAreTheSoftmaxOfAllExperts) {
  const auto choices = ChoicesOf({.experts = 3, .chosen = 2}, {0.0f, 2.0f, 1.0f});
  ASSERT_THAT(ExpertsOf(choices), testing::ElementsAre(1, 2));
  const float sum = std::exp(0.0f) + std::exp(1.0f) + std::exp(2.0f);
  EXPECT_NEAR(choices[0].weight, std::exp(2.0f) / sum, 1e-6);
  EXPECT_NEAR(choices[1].weight, std::exp(1.0f) / sum, 1e-6);
}

TEST(Router, RenormalisedWeightsAreTheSoftmaxOfTheChosen) {
  const auto choices = ChoicesOf({.experts = 3, .chosen = 2, .renormalized = true, .scale = 3.0f},
                                 {0.0f, 2.0f, 1.0f});
  EXPECT_NEAR(choices[0].weight, 3 * Sigmoid(1.0f), 1e-5);
  EXPECT_NEAR(choices[1].weight, 3 * Sigmoid(-1.0f), 1e-5);
}

TEST(Router, OfEqualExpertsTheFirstIsChosen) {
  EXPECT_THAT(ExpertsOf(ChoicesOf({.experts = 4, .chosen = 2}, {1.0f, 2.0f, 1.0f, 1.0f})),
              testing::ElementsAre(0, 1));
}

TEST(Router, TheBiasChangesTheChoiceButNotTheWeights) {
  const float bias[] = {0.0f, 0.0f, 1.0f};
  const auto choices = ChoicesOf({.kind = Routing::Kind::kSigmoid, .experts = 3, .chosen = 1},
                                 {2.0f, 1.0f, -1.0f}, bias);
  ASSERT_THAT(ExpertsOf(choices), testing::ElementsAre(2));
  EXPECT_NEAR(choices[0].weight, Sigmoid(-1.0f), 1e-6);
}

// The best of scores 1, 0.95 and 0.5 shares the softmax with the second, which is near. Without the
// best, the second is alone.
TEST(Router, ASparseMixerCountsScoresThatAreNearTheBest) {
  const Routing routing{.kind = Routing::Kind::kSparseMixer,
                        .experts = 4,
                        .chosen = 2,
                        .renormalized = true,
                        .scale = 3.0f,
                        .mixer_distance = 0.1f};
  const auto choices = ChoicesOf(routing, {0.5f, 1.0f, -2.0f, 0.95f});
  ASSERT_THAT(ExpertsOf(choices), testing::ElementsAre(1, 3));
  EXPECT_NEAR(choices[0].weight, Sigmoid(0.05f), 1e-6);
  EXPECT_FLOAT_EQ(choices[1].weight, 1.0f);
}

// The best expert is in the first group, but the best two are together better in the second.
TEST(Router, OnlyExpertsOfTheBestGroupsAreChosen) {
  const Routing routing{.kind = Routing::Kind::kSigmoid,
                        .experts = 6,
                        .chosen = 2,
                        .groups = 2,
                        .kept_groups = 1,
                        .group_best = 2};
  EXPECT_THAT(ExpertsOf(ChoicesOf(routing, {3.0f, -3.0f, -3.0f, 1.0f, 0.0f, 2.0f})),
              testing::ElementsAre(3, 5));
}

}  // namespace
}  // namespace penstock::shard::cpu
