#include "text/grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::text {
namespace {

using Kind = GrammarSpec::Kind;

constexpr TokenId kEnd = 259;         // "</s>" of the byte-level tokenizer
constexpr std::uint32_t kRows = 264;  // four more than the tokenizer has tokens

class GrammarTest : public ::testing::Test {
 protected:
  void SetUp() override { Load(ByteLevelJson(), kRows, kEnd); }

  void Load(const std::string& json, std::uint32_t rows, TokenId end) {
    folder_.Write("tokenizer.json", json);
    tokenizer_ = Tokenizer::Load(folder_.path()).value();
    vocabulary_ =
        Vocabulary::Create(*tokenizer_, rows, {&end, 1}, Vocabulary::Tables::kPrepared).value();
    mask_.resize(MaskWords(rows));
    end_ = end;
  }

  std::unique_ptr<GrammarMatcher> Start(Kind kind, const std::string& source) {
    const auto grammar = vocabulary_->Compile({kind, source}, {});
    EXPECT_TRUE(grammar.ok()) << grammar.status();
    return grammar.ok() ? (*grammar)->Start().value() : nullptr;
  }

  std::vector<TokenId> Allowed(GrammarMatcher& matcher) {
    EXPECT_TRUE(matcher.Mask(mask_).ok());
    std::vector<TokenId> allowed;
    for (std::uint32_t t = 0; t < vocabulary_->rows(); ++t) {
      if (((mask_[t / 32] >> (t % 32)) & 1) != 0) allowed.push_back(static_cast<TokenId>(t));
    }
    return allowed;
  }

  // An output of random allowed tokens, or of at most `most`; sets `ended`.
  std::string RandomOutput(GrammarMatcher& matcher, std::mt19937& draw, int most, bool& ended) {
    std::vector<TokenId> output;
    ended = false;
    while (static_cast<int>(output.size()) < most) {
      const std::vector<TokenId> allowed = Allowed(matcher);
      EXPECT_FALSE(allowed.empty());
      if (allowed.empty()) break;
      const TokenId token = allowed[draw() % allowed.size()];
      if (token == end_) {
        ended = true;
        break;
      }
      EXPECT_TRUE(matcher.Accept({&token, 1}).ok());
      output.push_back(token);
    }
    return tokenizer_->Decode(output, true).value();
  }

  TempFolder folder_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<std::uint32_t> mask_;
  TokenId end_ = kEnd;
};

TEST_F(GrammarTest, OnlyTokensThatKeepTheOutputMatchingAreAllowed) {
  const auto matcher = Start(Kind::kRegex, "(he|hi)+");
  EXPECT_EQ(Allowed(*matcher), (std::vector<TokenId>{'h', 256}));
  const TokenId h = 'h';
  ASSERT_TRUE(matcher->Accept({&h, 1}).ok());
  EXPECT_EQ(Allowed(*matcher), (std::vector<TokenId>{'e', 'i'}));
}

TEST_F(GrammarTest, EosIsAllowedOnlyWhereTheOutputMayEnd) {
  const auto matcher = Start(Kind::kRegex, "ab?");
  EXPECT_EQ(Allowed(*matcher), (std::vector<TokenId>{'a'}));
  const TokenId a = 'a', b = 'b';
  ASSERT_TRUE(matcher->Accept({&a, 1}).ok());
  EXPECT_EQ(Allowed(*matcher), (std::vector<TokenId>{'b', kEnd}));
  EXPECT_TRUE(matcher->Where()->accepting);
  EXPECT_FALSE(matcher->Where()->complete);
  ASSERT_TRUE(matcher->Accept({&b, 1}).ok());
  EXPECT_EQ(Allowed(*matcher), (std::vector<TokenId>{kEnd}));
  EXPECT_TRUE(matcher->Where()->complete);
}

TEST_F(GrammarTest, SpecialTokensAndPaddingRowsAreNeverText) {
  const auto matcher = Start(Kind::kRegex, "(.|\\n)*");
  const std::vector<TokenId> allowed = Allowed(*matcher);
  EXPECT_TRUE(std::count(allowed.begin(), allowed.end(), kEnd));
  EXPECT_FALSE(std::count(allowed.begin(), allowed.end(), 258));  // "<s>"
  EXPECT_LT(allowed.back(), 260);
}

TEST_F(GrammarTest, StateIsRebuiltFromTokensAlone) {
  const std::string schema = R"({"type":"object","properties":{"a":{"type":"integer"}},
      "required":["a"],"additionalProperties":false})";
  const auto first = Start(Kind::kJsonSchema, schema);
  const std::string text = R"({"a": 1)";
  const std::vector<TokenId> tokens(text.begin(), text.end());
  for (const TokenId token : tokens) {
    ASSERT_TRUE(first->Mask(mask_).ok());
    ASSERT_TRUE(first->Accept({&token, 1}).ok());
  }
  const auto second = Start(Kind::kJsonSchema, schema);
  ASSERT_TRUE(second->Accept(tokens).ok());
  EXPECT_EQ(Allowed(*first), Allowed(*second));
}

TEST_F(GrammarTest, ATokenThatTheMaskForbidsIsAnError) {
  const auto matcher = Start(Kind::kRegex, "a+");
  const TokenId b = 'b';
  EXPECT_FALSE(matcher->Accept({&b, 1}).ok());
  EXPECT_FALSE(matcher->Mask(mask_).ok());
}

TEST_F(GrammarTest, SentencePieceTokensAreTheirText) {
  Load(SentencePieceJson(), 263, 2);
  const auto matcher = Start(Kind::kRegex, " a你");
  std::vector<TokenId> allowed = Allowed(*matcher);
  EXPECT_EQ(allowed, (std::vector<TokenId>{3 + ' ', 259, 261}));
  const TokenId piece = 261;
  ASSERT_TRUE(matcher->Accept({&piece, 1}).ok());
  EXPECT_EQ(Allowed(*matcher), (std::vector<TokenId>{3 + 0xe4, 262}));
}

TEST_F(GrammarTest, BadAndTooLargeGrammarsAreRefusedInOneLine) {
  const auto refusal = [this](Kind kind, const std::string& source) {
    return vocabulary_->Compile({kind, source}, {}).status();
  };
  EXPECT_EQ(refusal(Kind::kRegex, "(").message(), "unclosed group");
  EXPECT_EQ(refusal(Kind::kRegex, "(").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refusal(Kind::kRegex, std::string(300'000, 'a')).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refusal(Kind::kJsonSchema, R"({"type":"nope"})").code(),
            absl::StatusCode::kInvalidArgument);
  const auto never =
      refusal(Kind::kJsonSchema, R"({"type":"object","properties":{"a":false},"required":["a"]})");
  EXPECT_EQ(never.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& deep : {std::string(100'000, '('), std::string(100'000, '[')}) {
    EXPECT_FALSE(refusal(Kind::kRegex, deep).ok());
    EXPECT_FALSE(refusal(Kind::kJsonSchema, deep).ok());
  }
}

// An expression in the syntax that this engine and std::regex (ECMAScript) share.
std::string RandomRegex(std::mt19937& draw, int depth) {
  const auto below = [&draw](unsigned n) { return draw() % n; };
  if (depth == 0 || below(4) == 0) {
    static const std::vector<std::string> kAtoms = {"a",      "b", "he", "[a-d]", "[0-9]+",
                                                    "x{2,3}", "t", "-",  "\\."};
    return kAtoms[below(static_cast<unsigned>(kAtoms.size()))];
  }
  const std::string left = RandomRegex(draw, depth - 1);
  const std::string right = RandomRegex(draw, depth - 1);
  switch (below(4)) {
    case 0:
      return "(" + left + "|" + right + ")";
    case 1:
      return "(" + left + ")?" + right;
    case 2:
      return "(" + left + "){1,3}" + right;
    default:
      return left + right;
  }
}

TEST_F(GrammarTest, RandomOutputsOfRandomExpressionsMatchThem) {
  const unsigned seed = 20261121;
  std::mt19937 draw(seed);
  int whole = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string source = RandomRegex(draw, 3);
    const auto matcher = Start(Kind::kRegex, source);
    ASSERT_NE(matcher, nullptr) << source;
    bool ended = false;
    const std::string text = RandomOutput(*matcher, draw, 80, ended);
    if (!ended) continue;
    ++whole;
    EXPECT_TRUE(std::regex_match(text, std::regex(source))) << source << " gave " << text;
  }
  EXPECT_GT(whole, 20) << "seed " << seed;
}

}  // namespace
}  // namespace penstock::text
