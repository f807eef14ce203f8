#include "shard/executor/drafts.h"

#include <gmock/gmock.h>

namespace penstock::shard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> Drafts(const std::vector<TokenId>& tokens, std::uint32_t most) {
  std::vector<TokenId> drafts = {99};
  FindDrafts(tokens, most, drafts);
  return drafts;
}

TEST(Drafts, AreTheTokensThatFollowedTheSameEnd) {
  EXPECT_THAT(Drafts({1, 2, 3, 4, 5, 1, 2}, 2), ElementsAre(3, 4));
  EXPECT_THAT(Drafts({1, 2, 3, 4, 5, 1, 2}, 3), ElementsAre(3, 4, 5));
}

TEST(Drafts, TheLongestMatchWinsThenTheNewest) {
  EXPECT_THAT(Drafts({7, 1, 2, 30, 1, 2, 40, 7, 1, 2}, 1), ElementsAre(30));
  EXPECT_THAT(Drafts({1, 2, 30, 1, 2, 40, 1, 2}, 1), ElementsAre(40));
}

TEST(Drafts, APeriodContinues) {
  EXPECT_THAT(Drafts({9, 1, 2, 1, 2}, 5), ElementsAre(1, 2, 1, 2, 1));
  EXPECT_THAT(Drafts({4, 4, 4}, 4), ElementsAre(4, 4, 4, 4));
}

TEST(Drafts, NeedAMatchOfTwoTokens) {
  EXPECT_THAT(Drafts({}, 4), IsEmpty());
  EXPECT_THAT(Drafts({1}, 4), IsEmpty());
  EXPECT_THAT(Drafts({1, 1}, 4), IsEmpty());
  EXPECT_THAT(Drafts({1, 2, 3, 4, 9, 2}, 4), IsEmpty()) << "only 2 occurred before";
  EXPECT_THAT(Drafts({1, 2, 3, 1, 2}, 0), IsEmpty());
}

// How many of 400 steps have drafts if all drafts are wrong.
TEST(DraftPace, WrongDraftsBecomeRare) {
  DraftPace pace;
  std::uint32_t rows = 0;
  for (int step = 0; step < 400; ++step) {
    const std::uint32_t drafts = pace.Take(4);
    rows += drafts;
    pace.Learn(drafts, 0);
  }
  EXPECT_LE(rows, 24u);
  EXPECT_GE(rows, 8u) << "it still tries";
}

TEST(DraftPace, RightDraftsGrowToTheFullLength) {
  DraftPace pace;
  EXPECT_EQ(pace.Take(8), 8u);
  pace.Learn(8, 0);
  EXPECT_EQ(pace.Take(8), 0u) << "a pause";
  EXPECT_EQ(pace.Take(8), 4u);
  pace.Learn(4, 4);
  EXPECT_EQ(pace.Take(8), 8u);
  pace.Learn(8, 2);
  EXPECT_EQ(pace.Take(8), 2u) << "as many as were right";
}

}  // namespace
}  // namespace penstock::shard
