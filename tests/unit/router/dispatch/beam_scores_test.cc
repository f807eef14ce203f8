#include "router/dispatch/beam_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::router {
namespace {

using ::testing::ElementsAre;

constexpr TokenId kEnd = 9;

std::vector<TokenId> Ids(const BeamScores::Finished& text) {
  std::vector<TokenId> ids;
  for (const SampledToken& token : text.tokens) ids.push_back(token.token);
  return ids;
}

std::vector<std::vector<TokenId>> BestIds(const BeamScores& scores, std::size_t count) {
  std::vector<std::vector<TokenId>> all;
  for (const auto& text : scores.Best(count)) all.push_back(Ids(text));
  return all;
}

// The texts of two tokens: the best first token does not begin the best text.
TEST(BeamScores, AWorseBeginningMayWin) {
  BeamScores scores({.width = 2}, {.max_new_tokens = 2, .ends = {kEnd}});
  EXPECT_EQ(scores.alternatives(), 5u);  // twice the width, and the end may be masked
  const std::vector<BeamScores::Continuations> first = {{{1, -0.5f}, {2, -0.9f}, {3, -3.0f}}};
  ASSERT_TRUE(scores.Advance(first));
  EXPECT_THAT(scores.RunningTokens(1), ElementsAre(2));
  const std::vector<BeamScores::Continuations> second = {{{4, -2.0f}}, {{5, -0.1f}, {6, -5.0f}}};
  EXPECT_FALSE(scores.Advance(second));
  EXPECT_THAT(BestIds(scores, 2), ElementsAre(ElementsAre(2, 5), ElementsAre(1, 4)));
}

// An end below the first `width` continuations does not count, and takes no running text's place.
TEST(BeamScores, AnEndCountsAmongTheBestOnly) {
  BeamScores scores({.width = 2}, {.max_new_tokens = 5, .ends = {kEnd}});
  const std::vector<BeamScores::Continuations> first = {
      {{1, -0.5f}, {2, -0.9f}, {kEnd, -1.0f}, {3, -3.0f}}};
  ASSERT_TRUE(scores.Advance(first));
  EXPECT_TRUE(scores.Best(2).empty());
  const std::vector<BeamScores::Continuations> second = {{{kEnd, -0.1f}, {4, -0.2f}},
                                                         {{5, -0.3f}, {6, -4.0f}}};
  ASSERT_TRUE(scores.Advance(second));
  EXPECT_THAT(BestIds(scores, 2), ElementsAre(ElementsAre(1, kEnd)));
  EXPECT_TRUE(scores.Best(1)[0].ended);
  EXPECT_THAT(scores.RunningTokens(0), ElementsAre(1, 4));
  EXPECT_THAT(scores.RunningTokens(1), ElementsAre(2, 5));
}

TEST(BeamScores, NoTextEndsBeforeTheLeastLength) {
  BeamScores scores({.width = 1}, {.max_new_tokens = 3, .min_new_tokens = 1, .ends = {kEnd}});
  const std::vector<BeamScores::Continuations> next = {{{kEnd, -0.1f}, {1, -2.0f}}};
  ASSERT_TRUE(scores.Advance(next));
  EXPECT_FALSE(scores.Advance(next));
  EXPECT_THAT(BestIds(scores, 1), ElementsAre(ElementsAre(1, kEnd)));
}

// Two ends (-0.2 / 1 and -1 / 2), while a text of -0.3 runs: a penalty of 2 divides by 9 at the
// greatest length.
TEST(BeamScores, EarlyStoppingSaysWhenItIsOver) {
  const auto ends_early = [](EarlyStopping rule) {
    BeamScores scores({.width = 2, .length_penalty = 2, .early_stopping = rule},
                      {.max_new_tokens = 3, .ends = {kEnd}});
    const std::vector<BeamScores::Continuations> first = {{{kEnd, -0.02f}, {1, -0.3f}}};
    EXPECT_TRUE(scores.Advance(first));
    const std::vector<BeamScores::Continuations> second = {{{kEnd, -0.01f}, {2, -2.0f}}};
    return !scores.Advance(second);
  };
  EXPECT_TRUE(ends_early(EarlyStopping::kFull));
  EXPECT_TRUE(ends_early(EarlyStopping::kEstimate));  // -2.3 / 4 is worse than -0.31 / 4
  EXPECT_TRUE(ends_early(EarlyStopping::kNever));     // and so is -2.3 / 9
}

TEST(BeamScores, TheGreatestLengthMayStillImproveAText) {
  const auto ends_early = [](EarlyStopping rule) {
    BeamScores scores({.width = 1, .early_stopping = rule}, {.max_new_tokens = 10, .ends = {kEnd}});
    const std::vector<BeamScores::Continuations> next = {{{kEnd, -0.5f}, {1, -1.0f}}};
    return !scores.Advance(next);
  };
  EXPECT_TRUE(ends_early(EarlyStopping::kFull));
  EXPECT_TRUE(ends_early(EarlyStopping::kEstimate));
  EXPECT_FALSE(ends_early(EarlyStopping::kNever));  // -1 / 10 is better than -0.5
}

TEST(BeamScores, TheShownAlternativesStayWithTheirToken) {
  BeamScores scores({.width = 1}, {.max_new_tokens = 1, .shown = 1, .ends = {kEnd}});
  const std::vector<BeamScores::Continuations> next = {{{1, -0.5f}, {2, -1.0f}}};
  EXPECT_FALSE(scores.Advance(next));
  const auto best = scores.Best(1);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_FALSE(best[0].ended);
  EXPECT_THAT(best[0].tokens[0].alternatives, ElementsAre(TokenLogprob{1, -0.5f}));
}

}  // namespace
}  // namespace penstock::router
