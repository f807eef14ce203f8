#include "router/stream/text_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

#include "tests/unit/text/shared_data.h"
#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::router {
namespace {

using Ids = std::vector<TokenId>;

constexpr TokenId kHe = 256, kT = 257, kBos = 258, kEos = 259;  // see tiny_tokenizer.h

std::shared_ptr<const text::Tokenizer> Tiny() {
  const TempFolder folder;
  folder.Write("tokenizer.json", text::ByteLevelJson());
  return text::Tokenizer::Load(folder.path()).value();
}

std::shared_ptr<const text::Tokenizer> Pieces() {
  const TempFolder folder;
  folder.Write("tokenizer.json", text::SentencePieceJson());
  return text::Tokenizer::Load(folder.path()).value();
}

std::vector<SampledToken> Sampled(const Ids& ids) {
  std::vector<SampledToken> tokens;
  for (const TokenId id : ids)
    tokens.push_back({.token = id, .logprob = -0.5f, .alternatives = {}});
  return tokens;
}

// Everything that one generation gave.
struct Generated {
  std::vector<GenerationToken> tokens;
  std::optional<std::uint32_t> finish_at;
  GenerationEnd end;

  std::string Deltas() const {
    std::string joined;
    for (const GenerationToken& token : tokens) joined += token.delta;
    return joined + end.tail;
  }
  std::vector<std::string> OwnTexts() const {
    std::vector<std::string> texts;
    for (const GenerationToken& token : tokens) texts.push_back(token.token.text);
    return texts;
  }
};

Generated Generate(const std::shared_ptr<const text::Tokenizer>& tokenizer, const Ids& ids,
                   TextStreamOptions options, FinishReason reason = FinishReason::kLength,
                   const Ids& prompt = {}) {
  auto stream = TextStream::Create(tokenizer, prompt, std::move(options)).value();
  Generated run;
  std::vector<GenerationEvent> events;
  for (const SampledToken& token : Sampled(ids)) {
    const auto finish_at = stream.Push({&token, 1}, events).value();
    if (finish_at) run.finish_at = finish_at;
  }
  for (GenerationEvent& event : events) {
    run.tokens.push_back(std::move(std::get<GenerationToken>(event)));
  }
  run.end = stream.Finish(reason, static_cast<std::uint32_t>(ids.size())).value();
  EXPECT_EQ(run.Deltas(), run.end.text);
  return run;
}

TextStreamOptions Options(std::vector<std::string> stop, StopRule rule = StopRule::kHide) {
  return {.stop = std::move(stop), .stop_rule = rule, .logprobs = false, .end_ids = {kEos}};
}

TEST(TextStream, DescribesEachToken) {
  TextStreamOptions options = Options({});
  options.logprobs = true;
  auto stream = TextStream::Create(Tiny(), {}, options).value();
  const SampledToken token{.token = kHe, .logprob = -1.0f, .alternatives = {{kT, -2.0f}}};
  std::vector<GenerationEvent> events;
  ASSERT_TRUE(stream.Push({&token, 1}, events).ok());
  ASSERT_TRUE(stream.Push({&token, 1}, events).ok());
  const auto& event = std::get<GenerationToken>(events.at(1));
  EXPECT_EQ(event.index, 1u);
  EXPECT_EQ(event.token.id, kHe);
  EXPECT_EQ(event.token.text, "he");
  EXPECT_EQ(event.token.logprob, -1.0f);
  ASSERT_EQ(event.top.size(), 1u);
  EXPECT_EQ(event.top[0].text, " t");
  EXPECT_EQ(event.top[0].logprob, -2.0f);
}

// Ids of SentencePieceJson.
constexpr TokenId kPieceBos = 1, kSpaceA = 261, kSmile[] = {3 + 0xf0, 3 + 0x9f, 3 + 0x98, 3 + 0x80};

// The texts of the alternatives to the last of `ids`, each of `alternatives`.
std::vector<std::string> Alternatives(const Ids& prompt, const Ids& ids, const Ids& alternatives,
                                      bool decode_alone) {
  TextStreamOptions options = Options({});
  options.decode_alone = decode_alone;
  auto stream = TextStream::Create(Pieces(), prompt, options).value();
  std::vector<SampledToken> tokens = Sampled(ids);
  for (const TokenId id : alternatives) tokens.back().alternatives.push_back({id, -1.0f});
  std::vector<GenerationEvent> events;
  EXPECT_TRUE(stream.Push(tokens, events).ok());
  std::vector<std::string> texts;
  for (const TokenInfo& info : std::get<GenerationToken>(events.back()).top) {
    texts.push_back(info.text);
  }
  return texts;
}

TEST(TextStream, AlternativesContinueTheText) {
  EXPECT_THAT(Alternatives({kPieceBos}, {kSpaceA}, {kSpaceA, kPieceBos}, false),
              testing::ElementsAre(" a", "<s>"));
  EXPECT_THAT(Alternatives({kPieceBos}, {kSpaceA, kSpaceA}, {kSpaceA}, false),
              testing::ElementsAre(" a"));
  // Nothing stands before this one.
  EXPECT_THAT(Alternatives({}, {kSpaceA}, {kSpaceA}, false), testing::ElementsAre("a"));
  // The last byte of a character, and text in its place.
  EXPECT_THAT(Alternatives({kPieceBos}, Ids(kSmile, kSmile + 4), {kSmile[3], kSpaceA}, false),
              testing::ElementsAre("😀", "\uFFFD\uFFFD\uFFFD a"));
}

TEST(TextStream, TgiDecodesAlternativesAlone) {
  EXPECT_THAT(Alternatives({kPieceBos}, {kSpaceA}, {kSpaceA}, true), testing::ElementsAre("a"));
  GenerationRequest request;
  EXPECT_FALSE(StreamOptionsOf(request, {}).decode_alone);
  request.decode_alone = true;
  EXPECT_TRUE(StreamOptionsOf(request, {}).decode_alone);
}

TEST(TextStream, TheEndTokenHasItsOwnTextButIsNotInTheText) {
  for (const StopRule rule : {StopRule::kHide, StopRule::kTokenEnd}) {
    const Generated run = Generate(Tiny(), {kHe, kEos}, Options({}, rule), FinishReason::kEos);
    EXPECT_EQ(run.OwnTexts(), (std::vector<std::string>{"he", "</s>"}));
    EXPECT_TRUE(run.tokens[1].token.special);
    EXPECT_EQ(run.end.text, "he");
    EXPECT_EQ(run.end.reason, FinishReason::kEos);
  }
  // A stop token that is an ordinary one.
  TextStreamOptions options = Options({});
  options.end_ids = {kT};
  EXPECT_EQ(Generate(Tiny(), {kHe, kT}, options, FinishReason::kStopToken).end.text, "he");
}

TEST(TextStream, SpecialTokensOfKeptMarkersAreInTheText) {
  const std::string bos = Tiny()->Decode(std::vector<TokenId>{kBos}, false).value();
  const Ids ids = {kHe, kBos, kT};
  EXPECT_EQ(Generate(Tiny(), ids, {}).end.text.find(bos), std::string::npos);
  const Generated kept = Generate(Tiny(), ids, {.kept_markers = {"a" + bos + "b"}});
  EXPECT_NE(kept.end.text.find(bos), std::string::npos);
  EXPECT_EQ(kept.Deltas(), kept.end.text);
  const Generated other = Generate(Tiny(), ids, {.kept_markers = {"<tool_call>"}});
  EXPECT_EQ(other.end.text, Generate(Tiny(), ids, {}).end.text);
}

TEST(TextStream, NeverSplitsACharacterAndEndsItInTheTail) {
  const Generated run = Generate(Tiny(), {'a', 0xf0, 0x9f, 0x98, 0x80, 0xc3}, Options({}));
  std::vector<std::string> deltas;
  for (const auto& token : run.tokens) deltas.push_back(token.delta);
  EXPECT_EQ(deltas, (std::vector<std::string>{"a", "", "", "", "😀", ""}));
  EXPECT_EQ(run.end.tail, "\uFFFD");
  EXPECT_EQ(run.end.text, "a😀\uFFFD");
}

TEST(TextStream, HoldsAPossibleStopStringBack) {
  const Generated none = Generate(Tiny(), {'a', 'x', 'y', 'b'}, Options({"xyz"}));
  EXPECT_EQ(none.tokens[1].delta, "");
  EXPECT_EQ(none.tokens[2].delta, "");
  EXPECT_EQ(none.tokens[3].delta, "xyb");
  EXPECT_EQ(none.end.reason, FinishReason::kLength);

  const Generated all = Generate(Tiny(), {'a', 'x', 'y', 'z', 'q', 'q'}, Options({"xyz"}));
  EXPECT_EQ(all.tokens.size(), 4u);
  EXPECT_EQ(all.finish_at, 4u);
  EXPECT_EQ(all.end.text, "a");
  EXPECT_EQ(all.end.reason, FinishReason::kStopString);
  EXPECT_EQ(all.end.generated_tokens, 4u);
  EXPECT_EQ(all.end.stop, "xyz");

  const Generated cut = Generate(Tiny(), {'a', 'x'}, Options({"xyz"}));
  EXPECT_EQ(cut.tokens[1].delta, "");
  EXPECT_EQ(cut.end.tail, "x");
}

TEST(TextStream, TextBeforeAStopStringInsideATokenIsShown) {
  const Generated run = Generate(Tiny(), {'a', kHe}, Options({"e"}));
  EXPECT_EQ(run.tokens[1].delta, "h");
  EXPECT_EQ(run.end.text, "ah");
}

TEST(TextStream, WithIncludeStopTextNothingIsHeldBack) {
  const Generated run =
      Generate(Tiny(), {'a', 'x', 'y', 'z', 'q'}, Options({"xyz"}, StopRule::kTokenEnd));
  EXPECT_EQ(run.OwnTexts(), (std::vector<std::string>{"a", "x", "y", "z"}));
  EXPECT_EQ(run.tokens[1].delta, "x");
  EXPECT_EQ(run.finish_at, 4u);
  EXPECT_EQ(run.end.text, "axyz");
  EXPECT_EQ(run.end.reason, FinishReason::kStopString);
  // A stop string in the middle of a token is none.
  EXPECT_FALSE(Generate(Tiny(), {kHe, 'x'}, Options({"h"}, StopRule::kTokenEnd)).finish_at);
}

TEST(TextStream, TheEarliestOfTwoReasonsWins) {
  // The stop string ends at token 2, EOS came at token 3 in the same step.
  for (const StopRule rule : {StopRule::kHide, StopRule::kTokenEnd}) {
    const Generated run =
        Generate(Tiny(), {'a', 'b', kEos}, Options({"ab"}, rule), FinishReason::kEos);
    EXPECT_EQ(run.end.reason, FinishReason::kStopString);
    EXPECT_EQ(run.end.generated_tokens, 2u);
  }
  // Both at the last token: TGI reports the length, the others the stop string.
  const Generated tgi = Generate(Tiny(), {'a', 'b'}, Options({"ab"}, StopRule::kTokenEnd));
  EXPECT_EQ(tgi.end.reason, FinishReason::kLength);
  EXPECT_EQ(tgi.end.stop, std::nullopt);
  EXPECT_EQ(tgi.end.text, "ab");
  const Generated other = Generate(Tiny(), {'a', 'b'}, Options({"ab"}));
  EXPECT_EQ(other.end.reason, FinishReason::kStopString);
  EXPECT_EQ(other.end.text, "");
}

TEST(TextStream, OptionsComeFromTheRequest) {
  GenerationRequest request;
  request.stop = {"x"};
  request.stop_token_ids = {7};
  request.logprobs.kind = LogprobRequest::Kind::kRaw;
  const TextStreamOptions options = StreamOptionsOf(request, {1, 2});
  EXPECT_EQ(options.end_ids, (Ids{7, 1, 2}));
  EXPECT_TRUE(options.logprobs);
  request.ignore_eos = true;
  EXPECT_EQ(StreamOptionsOf(request, {1, 2}).end_ids, Ids{7});
}

TEST(TextStream, AShownStopStringEndsTheTextInTheMiddleOfAToken) {
  const Generated run = Generate(Tiny(), {'a', kHe, 'x'}, Options({"h"}, StopRule::kShow));
  EXPECT_EQ(run.end.text, "ah");
  EXPECT_EQ(run.end.reason, FinishReason::kStopString);
  EXPECT_EQ(run.finish_at, 2u);
  EXPECT_EQ(run.tokens.size(), 2u);
  const Generated none = Generate(Tiny(), {'a', 'x'}, Options({"xyz"}, StopRule::kShow));
  EXPECT_EQ(none.tokens[1].delta, "x");  // nothing waits
}

TEST(TextStream, AStopTokenIsShownWithItsRule) {
  GenerationRequest request;
  request.stop_token_ids = {7};
  request.stop_rule = StopRule::kShow;
  EXPECT_EQ(StreamOptionsOf(request, {1}).end_ids, Ids{1});
}

TEST(TextStream, DescribesThePrompt) {
  const Ids prompt = {kBos, kHe, kT};
  const std::vector<float> logprobs = {-1.0f, -2.0f};
  GenerationStart start;
  ASSERT_TRUE(DescribePrompt(*Tiny(), prompt, {logprobs, {}}, true, start).ok());
  const std::vector<TokenInfo>& infos = start.prompt;
  ASSERT_EQ(infos.size(), 3u);
  EXPECT_EQ(infos[0].text, "<s>");
  EXPECT_TRUE(infos[0].special);
  EXPECT_EQ(infos[0].logprob, std::nullopt);
  EXPECT_EQ(infos[1].text, "he");
  EXPECT_EQ(infos[1].logprob, -1.0f);
  EXPECT_EQ(infos[2].logprob, -2.0f);
  EXPECT_TRUE(start.prompt_alternatives.empty());
}

TEST(TextStream, DescribesWhatElseThePromptCouldHave) {
  const Ids prompt = {kPieceBos, kSpaceA, kSpaceA};
  const std::vector<PromptAlternatives> others = {{3, {{kPieceBos, -0.5f}}}, {1, {{kSpaceA, -1}}}};
  GenerationStart start;
  ASSERT_TRUE(DescribePrompt(*Pieces(), prompt, {{}, others}, false, start).ok());
  ASSERT_EQ(start.prompt_alternatives.size(), 3u);
  EXPECT_TRUE(start.prompt_alternatives[0].top.empty());
  EXPECT_EQ(start.prompt_alternatives[1].rank, 3u);
  EXPECT_EQ(start.prompt_alternatives[1].top[0].text, "<s>");
  EXPECT_EQ(start.prompt_alternatives[1].top[0].logprob, -0.5f);
  EXPECT_EQ(start.prompt_alternatives[2].top[0].text, " a");
}

TEST(TextStream, TokensOfThePromptJoinToItsText) {
  const Ids prompt = {kPieceBos, kSpaceA, kSpaceA};
  GenerationStart joined, alone;
  ASSERT_TRUE(DescribePrompt(*Pieces(), prompt, {}, false, joined).ok());
  ASSERT_TRUE(DescribePrompt(*Pieces(), prompt, {}, true, alone).ok());
  EXPECT_EQ(joined.prompt[2].text, " a");
  EXPECT_EQ(alone.prompt[2].text, "a");
}

// 200 texts that mix words, CJK, Arabic, combining marks, emoji and ZWJ sequences.
std::vector<std::string> MixedTexts(std::mt19937& random) {
  const std::vector<std::string> parts = {"Hello",
                                          " world",
                                          "日本語",
                                          "你好，",
                                          "한국어",
                                          "السلام",
                                          " عليكم",
                                          "👨‍👩‍👧‍👦",
                                          "🏳️‍🌈",
                                          "👍🏽",
                                          "🇫🇷",
                                          "e\u0301",
                                          "\n",
                                          "  ",
                                          "𝔘",
                                          "\t",
                                          "naïve",
                                          "🧑🏿‍🚀",
                                          "∮",
                                          "\u200d"};
  std::vector<std::string> texts;
  for (int i = 0; i < 200; ++i) {
    std::string text;
    for (unsigned k = 0; k < 1 + random() % 12; ++k) text += parts[random() % parts.size()];
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(TextStreamEcho, TheTextOfAnEchoedPromptIsThePrompt) {
  PENSTOCK_SHARED_OR_SKIP(folder, "tokenizers/llama-3");
  const auto tokenizer = text::Tokenizer::Load(folder).value();
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const std::string& text : MixedTexts(random)) {
    const Ids prompt = tokenizer->Encode(text, true).value();
    const Ids script(prompt.begin() + 1, prompt.end());  // without <|begin_of_text|>
    // Text without any part of a stop string; one that would span tokens must not show either.
    const std::size_t at = text.size() / 2;
    for (const StopRule rule : {StopRule::kHide, StopRule::kTokenEnd}) {
      const Generated run =
          Generate(tokenizer, script, Options({}, rule), FinishReason::kLength, prompt);
      ASSERT_EQ(run.end.text, text);
    }
    const std::string stop = text.substr(at);
    if ((stop.front() & 0xc0) == 0x80) continue;
    const Generated run =
        Generate(tokenizer, script, Options({stop}), FinishReason::kLength, prompt);
    ASSERT_EQ(run.end.text, text.substr(0, text.find(stop)));
    ASSERT_EQ(run.Deltas(), run.end.text);
  }
}

}  // namespace
}  // namespace penstock::router
