#include "tools/simshard/token_script.h"

#include <gmock/gmock.h>

namespace penstock::simshard {
namespace {

using testing::ElementsAre;

// Ids 0, 1 and 2 are special; 2 ends.
class TokenScriptTest : public testing::Test {
 protected:
  static SequenceStart Start(std::vector<TokenId> prompt) {
    SequenceStart start;
    start.prompt = std::move(prompt);
    start.prompt_length = static_cast<std::uint32_t>(start.prompt.size());
    return start;
  }
  std::vector<TokenId> First(const SequenceStart& start, TokenRule rule, std::uint32_t count,
                             std::uint32_t base = 0) const {
    const TokenScript script(start, rule, facts_);
    std::vector<TokenId> tokens;
    for (std::uint32_t i = 0; i < count; ++i) tokens.push_back(script.At(base + i, false));
    return tokens;
  }
  const ModelFacts facts_ = PlainFacts(50);
};

TEST_F(TokenScriptTest, EchoRepeatsThePromptWithoutSpecialsThenEnds) {
  EXPECT_THAT(First(Start({1, 10, 0, 11, 12}), TokenRule::kEcho, 5), ElementsAre(10, 11, 12, 2, 2));
}

TEST_F(TokenScriptTest, EchoOfAnEmptyPromptEndsAtOnce) {
  EXPECT_THAT(First(Start({1}), TokenRule::kEcho, 1), ElementsAre(2));
}

TEST_F(TokenScriptTest, EchoStartsAgainWhileTheEndIsMasked) {
  const TokenScript script(Start({10, 11}), TokenRule::kEcho, facts_);
  EXPECT_EQ(script.At(2, true), 10);
  EXPECT_EQ(script.At(3, true), 11);
}

TEST_F(TokenScriptTest, ARestartContinuesWithTheSameTokens) {
  for (const TokenRule rule : {TokenRule::kHash, TokenRule::kEcho}) {
    const std::vector<TokenId> whole = First(Start({10, 11, 12}), rule, 3);
    SequenceStart again = Start({10, 11, 12, whole[0], whole[1]});
    again.sample_index_base = 2;
    EXPECT_EQ(First(again, rule, 1, 2).front(), whole[2]);
  }
}

TEST_F(TokenScriptTest, HashDependsOnPromptSeedAndPositionOnly) {
  SequenceStart start = Start({10, 11});
  const std::vector<TokenId> greedy = First(start, TokenRule::kHash, 20);
  EXPECT_EQ(First(start, TokenRule::kHash, 20), greedy);
  start.sampling.seed = 5;
  EXPECT_EQ(First(start, TokenRule::kHash, 20), greedy) << "a greedy request has seed 0";
  start.sampling.do_sample = true;
  EXPECT_NE(First(start, TokenRule::kHash, 20), greedy);
  EXPECT_NE(First(Start({10, 12}), TokenRule::kHash, 20), greedy);
}

TEST_F(TokenScriptTest, HashNeverEnds) {
  for (TokenId token : First(Start({10}), TokenRule::kHash, 2000)) {
    EXPECT_GT(token, 2);
    EXPECT_LT(token, 50);
  }
}

TEST(SimulatedLogprob, FollowsTheRecordedRule) {
  EXPECT_EQ(SimulatedLogprob(0), -0.25f);
  EXPECT_EQ(SimulatedLogprob(3), -1.0f);
  EXPECT_EQ(SimulatedLogprob(4), -0.25f);
}

}  // namespace
}  // namespace penstock::simshard
