#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/text/tiny_tokenizer.h"

namespace penstock::text {
namespace {

using Ids = std::vector<TokenId>;

std::shared_ptr<const Tokenizer> Tiny(std::string_view config = "{}") {
  const TempFolder folder;
  folder.Write("tokenizer.json", ByteLevelJson());
  folder.Write("tokenizer_config.json", config);
  return Tokenizer::Load(folder.path()).value();
}

TEST(Tokenizer, EncodesMergesAndAddsSpecialTokensOnDemand) {
  const auto tokenizer = Tiny();
  // The truncation to 4 tokens that the file asks for does not happen.
  EXPECT_EQ(tokenizer->Encode("he the", false).value(), (Ids{256, 257, 256}));
  EXPECT_EQ(tokenizer->Encode("abcdefgh", true).value().size(), 9u);
  EXPECT_EQ(tokenizer->Encode("he", true).value(), (Ids{258, 256}));
  EXPECT_EQ(tokenizer->Encode("a</s>", false).value(), (Ids{'a', 259}));
  EXPECT_EQ(tokenizer->Encode("", false).value(), Ids{});
}

TEST(Tokenizer, OffsetsCountBytesOfTheInput) {
  const Encoding encoding = Tiny()->EncodeWithOffsets("é he", true).value();
  EXPECT_EQ(encoding.ids, (Ids{258, 0xc3, 0xa9, ' ', 256}));
  const std::vector<std::pair<std::size_t, std::size_t>> expected = {
      {0, 0}, {0, 2}, {0, 2}, {2, 3}, {3, 5}};
  EXPECT_EQ(encoding.offsets, expected);
}

TEST(Tokenizer, DecodesWithAndWithoutSpecialTokens) {
  const auto tokenizer = Tiny();
  const Ids ids = {258, 256, 257, 0xc3, 259, 5'000};
  EXPECT_EQ(tokenizer->Decode(ids, true).value(), "he t\uFFFD");
  EXPECT_EQ(tokenizer->Decode(ids, false).value(), "<s>he t\uFFFD</s>");
  EXPECT_EQ(tokenizer->Decode({}, true).value(), "");
}

TEST(Tokenizer, KnowsItsTokens) {
  const auto tokenizer = Tiny(R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(tokenizer->vocabulary(), 260u);
  EXPECT_EQ(tokenizer->Token(257), "Ġt");
  EXPECT_EQ(tokenizer->Token(9'999), std::nullopt);
  EXPECT_TRUE(tokenizer->IsSpecial(258));
  EXPECT_FALSE(tokenizer->IsSpecial(256));
  EXPECT_FALSE(tokenizer->IsSpecial(-1));
  EXPECT_EQ(tokenizer->NamedTokensJson(), R"({"bos_token":"<s>","eos_token":"</s>"})");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto ids = Tiny()->Encode("ab\xff", false);
  EXPECT_EQ(ids.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ids.status().message(), "text must be valid UTF-8. Given: a bad byte at offset 2");
}

TEST(Tokenizer, NamesTheFileThatIsMissingOrBroken) {
  const TempFolder folder;
  const auto load = [&] {
    const absl::Status status = Tokenizer::Load(folder.path()).status();
    EXPECT_NE(status.message().find(folder.path()), absl::string_view::npos) << status;
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
    return status.code();
  };
  EXPECT_EQ(load(), absl::StatusCode::kNotFound);
  const std::string json = ByteLevelJson();
  const std::size_t decoder = json.find(R"("decoder":{"type":")") + 19;
  for (const std::string& broken :
       {std::string(), std::string("[]"), std::string("\xff"), json.substr(0, json.size() / 2),
        json.substr(0, decoder + 4), json.substr(0, decoder) + "Un" + json.substr(decoder),
        std::string(100'000, '[')}) {
    folder.Write("tokenizer.json", broken);
    EXPECT_EQ(load(), absl::StatusCode::kInvalidArgument);
  }
  folder.Write("tokenizer.json", json);
  folder.Write("tokenizer_config.json", "{");
  EXPECT_EQ(load(), absl::StatusCode::kInvalidArgument);
}

TEST(Tokenizer, ServesManyThreadsAtOnce) {
  const auto tokenizer = Tiny();
  const std::string text = "the hero said: né, hehe the end";
  const Ids expected = tokenizer->Encode(text, true).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        ASSERT_EQ(tokenizer->Encode(text, true).value(), expected);
        ASSERT_EQ(tokenizer->Decode(expected, true).value(), text);
        ASSERT_EQ(tokenizer->FactsOf(round).settled, round < 0x80);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Tokenizer, KnowsWhichTokensDoNotDependOnTheirNeighbours) {
  const TempFolder folder;
  folder.Write("tokenizer.json", ByteLevelJson());
  const auto tokenizer = Tokenizer::Load(folder.path()).value();
  const auto& word = tokenizer->FactsOf(257);
  EXPECT_TRUE(word.settled && !word.special);
  EXPECT_EQ(word.text, " t");
  EXPECT_FALSE(tokenizer->FactsOf(0xf0).settled);  // the beginning of a character
  EXPECT_TRUE(tokenizer->FactsOf(258).special);
  EXPECT_EQ(tokenizer->FactsOf(258).text, "<s>");
  EXPECT_EQ(&tokenizer->FactsOf(257), &word);
  for (const TokenId beyond : {260, -1}) {
    EXPECT_FALSE(tokenizer->FactsOf(beyond).settled || tokenizer->FactsOf(beyond).special);
  }
}

}  // namespace
}  // namespace penstock::text
