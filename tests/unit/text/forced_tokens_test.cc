// Tokens that a grammar forces: where it leaves one text, in the tokenizer's own spelling.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/support/paths.h"
#include "tests/unit/text/shared_data.h"
#include "tests/unit/text/story_schemas.h"
#include "tests/unit/text/tiny_tokenizer.h"
#include "text/grammar.h"

namespace penstock::text {
namespace {

using Kind = GrammarSpec::Kind;
using Ids = std::vector<TokenId>;
using Microseconds = std::chrono::duration<double, std::micro>;

// Of this thread: other programs count little.
Microseconds ThreadTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

constexpr std::size_t kMostForced = 64;

// A grammar over a tokenizer, and one output.
class Output {
 public:
  Output(const Tokenizer& tokenizer, std::uint32_t rows, TokenId end)
      : vocabulary_(
            Vocabulary::Create(tokenizer, rows, {&end, 1}, Vocabulary::Tables::kPrepared).value()),
        mask_(MaskWords(rows)) {}

  // False: it is no grammar.
  bool Begin(Kind kind, const std::string& source, Ids context = {}) {
    std::shared_ptr<const CompiledGrammar>& grammar = grammars_[source];
    if (grammar == nullptr) grammar = vocabulary_->Compile({kind, source}, {}).value_or(nullptr);
    if (grammar == nullptr) return false;
    matcher_ = grammar->Start().value();
    tokens_ = std::move(context);
    return true;
  }

  Ids Forced(std::size_t most = kMostForced) {
    const Microseconds begin = ThreadTime();
    EXPECT_TRUE(matcher_->Mask(mask_).ok());
    times_.push_back(ThreadTime() - begin);
    const std::size_t context = std::min(tokens_.size(), GrammarMatcher::kForcedContext);
    const auto forced = matcher_->Forced(mask_, std::span(tokens_).last(context), most);
    forced_times_.push_back(ThreadTime() - begin);
    EXPECT_TRUE(forced.ok()) << forced.status();
    return forced.value_or(Ids());
  }
  bool Accept(TokenId token) {
    tokens_.push_back(token);
    return matcher_->Accept({&token, 1}).ok();
  }

  // Of the masks, and of these with forced tokens.
  const std::vector<Microseconds>& times() const { return times_; }
  const std::vector<Microseconds>& forced_times() const { return forced_times_; }

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  std::unique_ptr<GrammarMatcher> matcher_;
  std::vector<std::uint32_t> mask_;
  Ids tokens_;
  std::vector<Microseconds> times_, forced_times_;
  std::map<std::string, std::shared_ptr<const CompiledGrammar>> grammars_;
};

class ForcedTokens : public testing::Test {
 protected:
  ForcedTokens() {
    folder_.Write("tokenizer.json", ByteLevelJson());
    tokenizer_ = Tokenizer::Load(folder_.path()).value();
    output_.emplace(*tokenizer_, 264, 259);
  }

  static Ids Bytes(std::string_view text) { return {text.begin(), text.end()}; }

  TempFolder folder_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<Output> output_;
};

TEST_F(ForcedTokens, OneTextIsForcedUpToTheFirstChoice) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, R"(\{"name": "[a-z]+", "age": [0-9]\})"));
  EXPECT_EQ(output_->Forced(), Bytes(R"({"name": ")"));
  EXPECT_EQ(output_->Forced(3), Bytes(R"({"n)"));
  for (const TokenId token : Bytes(R"({"name": "x")")) {
    output_->Forced();
    ASSERT_TRUE(output_->Accept(token));
  }
  EXPECT_EQ(output_->Forced(), Bytes(R"(, "age": )"));
}

TEST_F(ForcedTokens, ATextThatMayEndIsNotForcedFurther) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "ab(cd)?"));
  EXPECT_EQ(output_->Forced(), Bytes("ab"));
  output_->Accept('a');
  output_->Accept('b');
  EXPECT_EQ(output_->Forced(), Ids()) << "it may end here";
  output_->Accept('c');
  EXPECT_EQ(output_->Forced(), Bytes("d"));
}

TEST_F(ForcedTokens, TheyAreTheTokenizersOwn) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "the the end"));
  EXPECT_EQ(output_->Forced(), (Ids{'t', 256, 257, 256, ' ', 'e', 'n', 'd'}));
}

TEST_F(ForcedTokens, TheLastOnesAreLeftOutWhereAnotherTokenCouldSpellThem) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "a (the|no)"));
  EXPECT_EQ(output_->Forced(), Bytes("a")) << "' t' is one token";
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "a (one|no)"));
  EXPECT_EQ(output_->Forced(), Bytes("a "));
}

TEST_F(ForcedTokens, AnOutputThatTheTokenizerWouldJoinWithTheTextStays) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "the end"));
  output_->Forced();
  ASSERT_TRUE(output_->Accept('t'));
  output_->Forced();
  ASSERT_TRUE(output_->Accept('h'));
  EXPECT_EQ(output_->Forced(), Ids()) << "'he' is one token";
  ASSERT_TRUE(output_->Accept('e'));
  EXPECT_EQ(output_->Forced(), Bytes(" end"));
}

TEST_F(ForcedTokens, ThePromptIsTheTextBefore) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "end", {'t', 'h'}));
  EXPECT_EQ(output_->Forced(), Ids()) << "the tokenizer joins 'h' and 'e'";
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "end", {'t', 'h', 258})) << "but not over a special one";
  EXPECT_EQ(output_->Forced(), Bytes("end"));
}

TEST_F(ForcedTokens, CharactersStayWhole) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "x(é|ê)"));  // two bytes, the first one alike
  EXPECT_EQ(output_->Forced(), Bytes("x"));
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "xé[ab]"));
  EXPECT_EQ(output_->Forced(), (Ids{'x', 0xc3, 0xa9}));
}

TEST_F(ForcedTokens, ALongTextIsForcedInParts) {
  ASSERT_TRUE(output_->Begin(Kind::kRegex, "(a{1000}){1000}"));
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(output_->Forced(), Ids(kMostForced, 'a'));
    ASSERT_TRUE(output_->Accept('a'));
  }
}

TEST_F(ForcedTokens, ATextWithABoundInTokensIsNotForced) {
  ASSERT_TRUE(output_->Begin(Kind::kLark, "start: \"ab\" x\nx[max_tokens=2]: /[a-z]+/"));
  EXPECT_EQ(output_->Forced(), Ids());
}

TEST_F(ForcedTokens, SentencePieceAddsNoBlankInTheMiddle) {
  folder_.Write("tokenizer.json", SentencePieceJson());
  const auto tokenizer = Tokenizer::Load(folder_.path()).value();
  Output output(*tokenizer, 263, 2);
  ASSERT_TRUE(output.Begin(Kind::kRegex, "a a"));
  EXPECT_EQ(output.Forced(), (Ids{260, 261}));
}

// --- Real tokenizers

struct Case {
  const char* folder;
  std::uint32_t rows;
  TokenId end;
};

class RealForcedTokens : public testing::TestWithParam<Case> {
 protected:
  void Load(const std::string& folder) {
    tokenizer_ = Tokenizer::Load(folder).value();
    output_.emplace(*tokenizer_, GetParam().rows, GetParam().end);
  }

  struct Walk {
    bool followed = true;    // the grammar allows the tokenizer's own tokens of the text
    std::size_t tokens = 0;  // with the end
    std::size_t forced = 0;
    std::size_t wrong = 0;   // forced, but not the tokenizer's own of the whole text
    std::size_t passes = 0;  // of a model that appends up to `rows` - 1 forced tokens in each
  };

  // The output is the tokenizer's own tokens of the text.
  Walk Follow(const std::string& text, std::size_t rows = 16) {
    Walk walk;
    const Ids ids = tokenizer_->Encode("\x02" + text, false).value();
    const Ids lead = tokenizer_->Encode("\x02", false).value();
    const Ids own(ids.begin() + static_cast<std::ptrdiff_t>(lead.size()), ids.end());
    std::vector<bool> is_forced;
    Ids before;
    for (std::size_t at = 0; at < own.size(); ++at) {
      const Ids forced = output_->Forced();
      for (std::size_t i = 0; i < forced.size(); ++i) {
        walk.wrong += at + i >= own.size() || forced[i] != own[at + i];
      }
      const std::size_t rest = before.empty() ? 0 : before.size() - 1;
      const std::size_t compared = std::min(rest, forced.size());
      EXPECT_TRUE(rest <= forced.size() || rest == kMostForced - 1) << text << " at " << at;
      EXPECT_TRUE(std::equal(forced.begin(), forced.begin() + static_cast<std::ptrdiff_t>(compared),
                             before.begin() + 1))
          << text << ": other tokens are forced at " << at << " than before it";
      before = forced;
      is_forced.push_back(!forced.empty());
      walk.followed = walk.followed && output_->Accept(own[at]);
      if (!walk.followed) return walk;
    }
    is_forced.push_back(false);  // the end
    walk.tokens = is_forced.size();
    walk.forced = static_cast<std::size_t>(std::ranges::count(is_forced, true));
    for (std::size_t at = 1; at <= is_forced.size(); ++walk.passes) {
      for (std::size_t row = 1; row < rows && at < is_forced.size() && is_forced[at]; ++row) ++at;
      ++at;
    }
    return walk;
  }

  void Report() const {
    Report("mask", output_->times());
    Report("mask and forced tokens", output_->forced_times());
  }
  static void Report(const char* what, std::vector<Microseconds> times) {
    std::ranges::sort(times);
    const double sum = std::accumulate(times.begin(), times.end(), Microseconds(0)).count();
    const auto late = std::ranges::count_if(times, [](auto time) { return time.count() > 1000; });
    const auto count = static_cast<double>(times.size());
    std::printf("%s: mean %.1f us, median %.1f us, longest %.0f us, %.2f %% above 1 ms\n", what,
                sum / count, times[times.size() / 2].count(), times.back().count(),
                100.0 * static_cast<double>(late) / count);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<Output> output_;
};

TEST_P(RealForcedTokens, AreAllCanonicalInRandomSchemas) {
  PENSTOCK_SHARED_OR_SKIP(folder, GetParam().folder);
  PENSTOCK_SHARED_OR_SKIP(texts, "text/sotu.txt");
  Load(folder);
  StorySchemas draw(ReadFile(texts), 7);
  std::size_t followed = 0, forced = 0, tokens = 0, wrong = 0;
  for (int i = 0; i < 150; ++i) {
    const StorySchemas::Example example = draw.Random();
    ASSERT_TRUE(output_->Begin(example.kind, example.grammar)) << example.grammar;
    const Walk walk = Follow(example.text);
    EXPECT_EQ(walk.wrong, 0u) << example.text;
    followed += walk.followed;
    forced += walk.forced;
    tokens += walk.tokens;
    wrong += walk.wrong;
  }
  EXPECT_GT(followed, 140u);
  std::printf("%s: %zu of %zu tokens forced, %zu of them not canonical\n", GetParam().folder,
              forced, tokens, wrong);
  Report();
}

TEST_P(RealForcedTokens, HalveThePassesOfCharactersAndCities) {
  PENSTOCK_SHARED_OR_SKIP(folder, GetParam().folder);
  PENSTOCK_SHARED_OR_SKIP(texts, "text/sotu.txt");
  Load(folder);
  StorySchemas draw(ReadFile(texts), 11);
  for (const bool city : {false, true}) {
    std::size_t passes = 0, tokens = 0;
    for (int i = 0; i < 50; ++i) {
      const StorySchemas::Example example = city ? draw.City() : draw.Character();
      ASSERT_TRUE(output_->Begin(example.kind, example.grammar)) << example.grammar;
      const Walk walk = Follow(example.text);
      EXPECT_TRUE(walk.followed) << example.text;
      EXPECT_EQ(walk.wrong, 0u) << example.text;
      passes += walk.passes;
      tokens += walk.tokens;
    }
    const double per_token = static_cast<double>(passes) / static_cast<double>(tokens);
    std::printf("%s, %s: %.3f passes a token\n", GetParam().folder, city ? "city" : "character",
                per_token);
    EXPECT_LE(per_token, 0.65);
  }
  Report();
}

INSTANTIATE_TEST_SUITE_P(SharedData, RealForcedTokens,
                         testing::Values(Case{"tokenizers/llama-3", 128256, 128001},
                                         Case{"tokenizers/qwen2", 151936, 151645},
                                         Case{"tokenizers/llama-2", 32000, 2},
                                         Case{"tokenizers/gpt2", 50257, 50256}),
                         [](const auto& info) {
                           std::string name = info.param.folder;
                           name = name.substr(name.find('/') + 1);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace penstock::text
