// Real tokenizers give the ids and texts of the reference implementation.
#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <array>
#include <boost/json.hpp>
#include <cstdio>

#include "tests/unit/text/shared_data.h"
#include "text/tokenizer.h"

namespace penstock::text {
namespace {

std::vector<TokenId> Ids(const boost::json::value& list) {
  std::vector<TokenId> ids;
  for (const auto& id : list.as_array()) ids.push_back(static_cast<TokenId>(id.to_number<int>()));
  return ids;
}

std::string Sha256Hex(const std::vector<TokenId>& ids) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(ids.data()), ids.size() * sizeof(TokenId),
         digest.data());
  std::string hex;
  for (const unsigned char byte : digest) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", byte);
    hex += digits.data();
  }
  return hex;
}

class TokenizerGolden : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerGolden, HardTexts) {
  PENSTOCK_SHARED_OR_SKIP(folder, GetParam());
  const auto tokenizer = Tokenizer::Load(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const boost::json::value golden = ReadJson(folder + "/golden_tokenizer.json");
  const auto& cases = golden.at("cases").as_array();
  ASSERT_GE(cases.size(), 34u);
  for (const auto& item : cases) {
    const std::string text = Text(item.at("text"));
    SCOPED_TRACE("text: " + text);
    const std::vector<TokenId> ids = Ids(item.at("ids"));
    const std::vector<TokenId> with_special = Ids(item.at("ids_with_special"));
    EXPECT_EQ((*tokenizer)->Encode(text, false).value(), ids);
    EXPECT_EQ((*tokenizer)->Encode(text, true).value(), with_special);
    EXPECT_EQ((*tokenizer)->EncodeWithOffsets(text, true).value().ids, with_special);
    EXPECT_EQ((*tokenizer)->Decode(with_special, true).value(), Text(item.at("decoded")));
    EXPECT_EQ((*tokenizer)->Decode(with_special, false).value(),
              Text(item.at("decoded_with_special")));
  }
}

TEST_P(TokenizerGolden, WholeFiles) {
  PENSTOCK_SHARED_OR_SKIP(folder, GetParam());
  const auto tokenizer = Tokenizer::Load(folder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const boost::json::value golden = ReadJson(folder + "/golden_tokenizer.json");
  for (const auto& item : golden.at("files").as_array()) {
    const std::string name = Text(item.at("file"));
    PENSTOCK_SHARED_OR_SKIP(path, name);
    const std::string content = ReadFile(path);
    if (content.size() != item.at("bytes").to_number<std::size_t>()) {
      std::fprintf(stderr, "not compared, the file is another than the golden's: %s\n",
                   name.c_str());
      continue;
    }
    const auto ids = (*tokenizer)->Encode(content, false);
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(ids->size(), item.at("n_tokens").to_number<std::size_t>()) << name;
    EXPECT_EQ(Sha256Hex(*ids), Text(item.at("sha256_u32le"))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shared, TokenizerGolden,
                         testing::Values("tokenizers/llama-2", "tokenizers/llama-3",
                                         "tokenizers/qwen2", "tokenizers/gpt2",
                                         "models/stories260K-hf"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace penstock::text
