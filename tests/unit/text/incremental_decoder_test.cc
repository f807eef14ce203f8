#include "text/incremental_decoder.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <random>

#include "tests/unit/text/shared_data.h"
#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::text {
namespace {

using Ids = std::vector<TokenId>;

std::shared_ptr<const Tokenizer> Make(const std::string& json) {
  const TempFolder folder;
  folder.Write("tokenizer.json", json);
  return Tokenizer::Load(folder.path()).value();
}

bool IsUtf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead >= 0x80 && lead < 0xc2) return false;
    if (i + length > text.size()) return false;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    i += length;
  }
  return true;
}

// The increments, the last one by Finish. Each must be whole UTF-8.
std::vector<std::string> Increments(const Tokenizer& tokenizer, const Ids& context, const Ids& ids,
                                    bool skip_special) {
  auto decoder = IncrementalDecoder::Create(tokenizer, skip_special, context).value();
  std::vector<std::string> increments;
  for (const TokenId id : ids) increments.emplace_back(decoder.Push(id).value());
  increments.emplace_back(decoder.Finish().value());
  for (const std::string& increment : increments) EXPECT_TRUE(IsUtf8(increment)) << increment;
  return increments;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string whole;
  for (const std::string& part : parts) whole += part;
  return whole;
}

std::string Incrementally(const Tokenizer& tokenizer, const Ids& context, const Ids& ids,
                          bool skip_special) {
  return Join(Increments(tokenizer, context, ids, skip_special));
}

TEST(IncrementalDecoder, AnIncompleteCharacterWaits) {
  const auto tokenizer = Make(ByteLevelJson());
  const std::vector<std::string> expected = {"he", "", "", "", "😀", " t", ""};
  EXPECT_EQ(Increments(*tokenizer, {}, {256, 0xf0, 0x9f, 0x98, 0x80, 257}, true), expected);
}

TEST(IncrementalDecoder, AnIncompleteCharacterAtTheEndIsAReplacement) {
  const auto tokenizer = Make(ByteLevelJson());
  const std::vector<std::string> expected = {"a", "", "", "\uFFFD"};
  EXPECT_EQ(Increments(*tokenizer, {}, {'a', 0xf0, 0x9f}, true), expected);
}

TEST(IncrementalDecoder, EndlessBrokenBytesAreReturnedAsReplacements) {
  const auto tokenizer = Make(ByteLevelJson());
  const auto increments = Increments(*tokenizer, {}, Ids(1'000, 0xff), true);
  std::size_t held = 0, longest = 0;
  for (const std::string& increment : increments) {
    held = increment.empty() ? held + 1 : 0;
    longest = std::max(longest, held);
  }
  EXPECT_LE(longest, 32u);
  EXPECT_EQ(Join(increments), tokenizer->Decode(Ids(1'000, 0xff), true).value());
}

TEST(IncrementalDecoder, OmitsSpecialTokensOnDemand) {
  const auto tokenizer = Make(ByteLevelJson());
  EXPECT_EQ(Incrementally(*tokenizer, {}, {258, 'a', 259}, true), "a");
  EXPECT_EQ(Incrementally(*tokenizer, {}, {258, 'a', 259}, false), "<s>a</s>");
  EXPECT_EQ(Incrementally(*tokenizer, {}, {'a', 5'000, -1, 'b'}, false), "ab");
}

TEST(IncrementalDecoder, ContinuesThePromptOfSentencePiece) {
  const auto tokenizer = Make(SentencePieceJson());
  const Ids a = tokenizer->Encode("a", false).value();  // "▁a"
  EXPECT_EQ(Incrementally(*tokenizer, {}, a, true), "a");
  EXPECT_EQ(Incrementally(*tokenizer, a, a, true), " a");
  EXPECT_EQ(Incrementally(*tokenizer, {1}, a, true), "a");
  EXPECT_EQ(Incrementally(*tokenizer, {1}, a, false), " a");
}

TEST(IncrementalDecoder, APeekIsWhatTheTokenWouldAddAndChangesNothing) {
  const auto bytes = Make(ByteLevelJson());
  auto decoder = IncrementalDecoder::Create(*bytes, false, Ids{'x'}).value();
  EXPECT_EQ(decoder.Peek(256).value(), "he");
  EXPECT_EQ(decoder.Push(0xc3).value(), "");
  EXPECT_EQ(decoder.Peek(0xa9).value(), "é");
  EXPECT_EQ(decoder.Peek(0xc3).value(), "\uFFFD\uFFFD");
  EXPECT_EQ(decoder.Push(0xa9).value(), "é");
  const auto pieces = Make(SentencePieceJson());
  const Ids a = pieces->Encode("a", false).value();  // "▁a"
  EXPECT_EQ(IncrementalDecoder::Create(*pieces, false, a)->Peek(a[0]).value(), " a");
  EXPECT_EQ(IncrementalDecoder::Create(*pieces, false, {})->Peek(a[0]).value(), "a");
}

TEST(IncrementalDecoder, IncrementsOfRandomBytesJoinToTheWholeText) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto bytes = Make(ByteLevelJson());
  for (int round = 0; round < 2'000; ++round) {
    Ids ids;
    for (unsigned i = 0; i < 1 + random() % 20; ++i) ids.push_back(random() % 262);
    const bool skip = random() % 2 == 0;
    ASSERT_EQ(Incrementally(*bytes, {}, ids, skip), bytes->Decode(ids, skip).value());
  }
  const auto pieces = Make(SentencePieceJson());
  for (int round = 0; round < 2'000; ++round) {
    // A run of byte tokens is one character, whole or cut; see the header for the other ones.
    Ids ids;
    for (unsigned i = 0; i < 1 + random() % 10; ++i) {
      const Ids emoji = {3 + 0xf0, 3 + 0x9f, 3 + 0x98, 3 + 0x80};
      ids.insert(ids.end(), emoji.begin(), emoji.begin() + random() % 5);
      ids.push_back(259 + random() % 4);
    }
    ASSERT_EQ(Incrementally(*pieces, {}, ids, true), pieces->Decode(ids, true).value());
  }
}

TEST(IncrementalDecoder, TimePerTokenDoesNotGrow) {
  const auto tokenizer = Make(ByteLevelJson());
  auto decoder = IncrementalDecoder::Create(*tokenizer, true, {}).value();
  const auto run = [&] {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 50'000; ++i) EXPECT_TRUE(decoder.Push(i % 2 == 0 ? 256 : 257).ok());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  double first = run();
  first = std::min(first, run());
  for (int i = 0; i < 4; ++i) run();
  double last = run();
  last = std::min(last, run());
  EXPECT_LT(last, 5 * first);
}

const std::vector<std::string>& HardTexts() {
  static const std::vector<std::string> texts = {
      "👨‍👩‍👧‍👦 family, 🏳️‍🌈 flag, 👍🏽 thumb, 🇫🇷",
      "日本語のテキストと漢字、ひらがな。你好，世界！한국어",
      "السلام عليكم ورحمة الله",
      "e\u0301 cafe\u0301 n\u0303 \u200b zero\u200dwidth \uFFFD literal",
      "  two  spaces\n\n\ttabs\r\n",
      "∮ E⋅da = Q, 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 🧑🏿‍🚀"};
  return texts;
}

class RealTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(RealTokenizer, IncrementsJoinToTheWholeText) {
  PENSTOCK_SHARED_OR_SKIP(folder, GetParam());
  const auto tokenizer = Tokenizer::Load(folder).value();
  for (const std::string& text : HardTexts()) {
    const Ids ids = tokenizer->Encode(text, true).value();
    EXPECT_EQ(Incrementally(*tokenizer, {}, ids, true), tokenizer->Decode(ids, true).value());
    // As a continuation of itself: what decoding both gives beyond decoding the first.
    Ids twice = ids;
    twice.insert(twice.end(), ids.begin(), ids.end());
    const std::string once_text = tokenizer->Decode(ids, true).value();
    EXPECT_EQ(once_text + Incrementally(*tokenizer, ids, ids, true),
              tokenizer->Decode(twice, true).value());
  }
}

TEST_P(RealTokenizer, IncrementsOfRandomTokensJoinToTheWholeText) {
  PENSTOCK_SHARED_OR_SKIP(folder, GetParam());
  const auto tokenizer = Tokenizer::Load(folder).value();
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Ids ids;
    for (int i = 0; i < 30; ++i) {
      const TokenId id = random() % tokenizer->vocabulary();
      const std::string spelling = tokenizer->Token(id).value_or("");
      // Two byte tokens of SentencePiece in a row: see the header.
      const bool byte_token = spelling.size() == 6 && spelling.starts_with("<0x");
      if (!byte_token) ids.push_back(id);
    }
    const bool skip = random() % 2 == 0;
    ASSERT_EQ(Incrementally(*tokenizer, {}, ids, skip), tokenizer->Decode(ids, skip).value());
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, RealTokenizer,
                         testing::Values("tokenizers/llama-2", "tokenizers/llama-3",
                                         "tokenizers/qwen2", "tokenizers/gpt2",
                                         "models/stories260K-hf"));

}  // namespace
}  // namespace penstock::text
