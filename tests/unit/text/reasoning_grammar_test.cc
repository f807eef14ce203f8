// Reasoning before a grammar: the directive %reasoning of Lark grammars.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/text/tiny_tokenizer.h"
#include "text/grammar.h"

namespace penstock::text {
namespace {

constexpr TokenId kEnd = 259;
constexpr std::uint32_t kRows = 260;

// The model may open the reasoning itself; `more` are further members.
std::string Rule(const std::string& more) {
  return R"(%reasoning {"markers":[{"open":"<t>","close":"</t>","forced":"</t>"}])" + more + "}";
}

// Then a digit must follow.
std::string BeforeDigit(const std::string& more = "") {
  return Rule(more + R"(,"kind":2,"source":"[0-9]")");
}

class ReasoningGrammarTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("tokenizer.json", ByteLevelJson());
    tokenizer_ = Tokenizer::Load(folder_.path()).value();
    vocabulary_ =
        Vocabulary::Create(*tokenizer_, kRows, {&kEnd, 1}, Vocabulary::Tables::kPlain).value();
    mask_.resize(MaskWords(kRows));
  }

  bool Allows(GrammarMatcher& matcher, TokenId token) {
    EXPECT_TRUE(matcher.Mask(mask_).ok());
    return ((mask_[token / 32] >> (token % 32)) & 1) != 0;
  }

  // The part of an output that is allowed, byte by byte. "$" at the end: the output may end there.
  std::string Taken(const std::string& rule, const std::string& output) {
    const auto grammar = vocabulary_->Compile({GrammarSpec::Kind::kLark, rule}, {});
    if (!grammar.ok()) return std::string(grammar.status().message());
    const auto matcher = (*grammar)->Start().value();
    std::string taken;
    for (const char c : output) {
      const auto token = static_cast<TokenId>(static_cast<unsigned char>(c));
      if (!Allows(*matcher, token) || !matcher->Accept({&token, 1}).ok()) return taken;
      taken += c;
    }
    return Allows(*matcher, kEnd) ? taken + "$" : taken;
  }

  TempFolder folder_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<std::uint32_t> mask_;
};

TEST_F(ReasoningGrammarTest, TheGrammarBeginsAfterTheClosingMarker) {
  const std::string opened = BeforeDigit(R"(,"opened":0)");
  EXPECT_EQ(Taken(opened, "so </ </t>7"), "so </ </t>7$");
  EXPECT_EQ(Taken(opened, "so </t>x"), "so </t>");
  EXPECT_EQ(Taken(opened, "7"), "7") << "the output must not end in the reasoning";
}

TEST_F(ReasoningGrammarTest, TheModelMayOpenTheReasoningOrNot) {
  EXPECT_EQ(Taken(BeforeDigit(), "<t>so</t>7"), "<t>so</t>7$");
  EXPECT_EQ(Taken(BeforeDigit(), "7"), "7$");
  EXPECT_EQ(Taken(BeforeDigit(), "<a"), "<");
  EXPECT_EQ(Taken(BeforeDigit(), "x"), "");
}

TEST_F(ReasoningGrammarTest, AGrammarThatBeginsLikeTheMarkerStaysPossible) {
  const std::string rule = Rule(R"(,"kind":2,"source":"<[a-z]+>")");
  EXPECT_EQ(Taken(rule, "<b>"), "<b>$");
  EXPECT_EQ(Taken(rule, "<tab>"), "<tab>$");
  EXPECT_EQ(Taken(rule, "<t>so</t><b>"), "<t>so</t><b>$");
}

TEST_F(ReasoningGrammarTest, TheMarkerIsForcedWhenTheBudgetIsSpent) {
  const std::string rule = BeforeDigit(R"(,"opened":0,"budget":3)");
  EXPECT_EQ(Taken(rule, "abcd"), "abc");
  EXPECT_EQ(Taken(rule, "abc</t>7"), "abc</t>7$");
  EXPECT_EQ(Taken(BeforeDigit(R"(,"opened":0,"budget":0)"), "a"), "");
  EXPECT_EQ(Taken(BeforeDigit(R"(,"opened":0,"budget":0)"), "</t>7"), "</t>7$");
  EXPECT_EQ(Taken(BeforeDigit(R"(,"budget":0)"), "<t></t>7"), "<t></t>7$");
  EXPECT_EQ(Taken(BeforeDigit(R"(,"budget":0)"), "<t>a"), "<t>");
}

TEST_F(ReasoningGrammarTest, ABudgetAloneLeavesTheRestFree) {
  const std::string rule = Rule(R"(,"budget":2)");
  EXPECT_EQ(Taken(rule, "any text"), "any text$");
  EXPECT_EQ(Taken(rule, "<t>abc"), "<t>ab");
  EXPECT_EQ(Taken(rule, "<t>ab</t>any <t>text, which is no reasoning"),
            "<t>ab</t>any <t>text, which is no reasoning$");
}

// No engine could take the text of the grammar in a token that ends the reasoning: "he" with the
// marker "h".
TEST_F(ReasoningGrammarTest, ATokenWithTextAfterTheMarkerIsNotAllowed) {
  const std::string rule =
      R"(%reasoning {"markers":[{"open":"<t>","close":"h","forced":"h"}],"opened":0,)"
      R"("kind":2,"source":"e"})";
  const auto grammar = vocabulary_->Compile({GrammarSpec::Kind::kLark, rule}, {}).value();
  const auto matcher = grammar->Start().value();
  EXPECT_FALSE(Allows(*matcher, 256));
  EXPECT_TRUE(Allows(*matcher, 'h'));
  EXPECT_EQ(Taken(rule, "ahe"), "ahe$");
}

TEST_F(ReasoningGrammarTest, AGrammarThatIsWrongIsRefused) {
  EXPECT_EQ(Taken(Rule(R"(,"kind":2,"source":"(")"), ""), "unclosed group");
  EXPECT_EQ(Taken("%reasoning {\"markers\":[]}", ""), "reasoning must have markers");
}

}  // namespace
}  // namespace penstock::text
