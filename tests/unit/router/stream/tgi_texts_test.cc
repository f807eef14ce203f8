// The text of each token and of the whole answer against answers that TGI's own router recorded.
#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <boost/json.hpp>
#include <map>

#include "router/stream/text_stream.h"
#include "tests/unit/text/shared_data.h"
#include "text/tokenizer.h"

namespace penstock::router {
namespace {

namespace json = boost::json;
using Ids = std::vector<TokenId>;

std::string Unzip(const std::string& path) {
  std::string content;
  gzFile file = gzopen(path.c_str(), "rb");
  std::array<char, 1 << 16> chunk{};
  for (int size = 0; (size = gzread(file, chunk.data(), chunk.size())) > 0;) {
    content.append(chunk.data(), size);
  }
  gzclose(file);
  return content;
}

// One answer of POST /generate with details.
struct Answer {
  std::string id;
  std::string prompt;
  std::uint32_t truncate = 0;
  json::array tokens;
  std::string text;
};

// The member as an object, an empty one where there is none.
json::object Object(const json::object& of, std::string_view key) {
  const json::value* member = of.if_contains(json::string_view(key.data(), key.size()));
  return member != nullptr && member->is_object() ? member->as_object() : json::object();
}

// The member, a text, parsed as an object; an empty one where that fails.
json::object Parsed(const json::object& of, std::string_view key) {
  const json::value* member = of.if_contains(json::string_view(key.data(), key.size()));
  json::error_code failed;
  if (member == nullptr || !member->is_string()) return {};
  const json::value parsed = json::parse(member->as_string(), failed);
  return !failed && parsed.is_object() ? parsed.as_object() : json::object();
}

std::optional<Answer> AnswerOf(const json::value& exchange) {
  const json::object request = Object(exchange.as_object(), "request");
  if (request.at("path") != "/generate") return std::nullopt;
  const json::object asked = Parsed(request, "body");
  const json::object given = Parsed(Object(exchange.as_object(), "response"), "body");
  const json::object details = Object(given, "details");
  const json::object parameters = Object(asked, "parameters");
  const json::value* full_text = parameters.if_contains("return_full_text");
  if (!asked.contains("inputs") || !details.contains("tokens") ||
      (full_text != nullptr && *full_text == true)) {
    return std::nullopt;
  }
  const json::value* truncate = parameters.if_contains("truncate");
  const bool truncated = truncate != nullptr && truncate->is_number();
  return Answer{.id = text::Text(exchange.at("id")),
                .prompt = text::Text(asked.at("inputs")),
                .truncate = truncated ? truncate->to_number<std::uint32_t>() : 0,
                .tokens = details.at("tokens").as_array(),
                .text = text::Text(given.at("generated_text"))};
}

void Compare(const std::shared_ptr<const text::Tokenizer>& tokenizer, const Answer& answer) {
  Ids prompt = tokenizer->Encode(answer.prompt, true).value();
  if (answer.truncate > 0 && prompt.size() > answer.truncate) {
    prompt.erase(prompt.begin(), prompt.end() - answer.truncate);
  }
  auto stream = TextStream::Create(tokenizer, prompt, {.stop_rule = StopRule::kTokenEnd}).value();
  std::vector<GenerationEvent> events;
  for (const json::value& token : answer.tokens) {
    const SampledToken sampled{.token = token.at("id").to_number<TokenId>()};
    ASSERT_TRUE(stream.Push({&sampled, 1}, events).ok());
    const TokenInfo& info = std::get<GenerationToken>(events.back()).token;
    ASSERT_EQ(info.text, text::Text(token.at("text")));
    ASSERT_EQ(info.special, token.at("special").as_bool());
  }
  const GenerationEnd end = stream.Finish(FinishReason::kLength, 0).value();
  // TGI gives no text at all when the last character is cut; here it is U+FFFD.
  if (end.tail.empty()) {
    EXPECT_EQ(end.text, answer.text);
  } else {
    EXPECT_EQ(answer.text, "");
  }
}

TEST(TgiTexts, TokensAndTextAreThoseOfTgi) {
  PENSTOCK_SHARED_OR_SKIP(path, "tgi_http/exchanges.jsonl.gz");
  PENSTOCK_SHARED_OR_SKIP(tokenizers, "tokenizers");
  const std::map<std::string, std::string> folders = {{"a", "llama-2"}, {"b", "llama-3"},
                                                      {"c", "llama-2"}, {"d", "qwen2"},
                                                      {"e", "llama-2"}, {"f", "llama-2"}};
  std::map<std::string, std::shared_ptr<const text::Tokenizer>> loaded;
  const std::string content = Unzip(path);
  int compared = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = content.find('\n', begin);
    const json::value exchange = json::parse(content.substr(begin, end - begin));
    begin = end + 1;
    const std::optional<Answer> answer = AnswerOf(exchange);
    if (!answer) continue;
    SCOPED_TRACE(answer->id);
    const std::string& folder = folders.at(text::Text(exchange.at("config")));
    auto& tokenizer = loaded[folder];
    if (!tokenizer) tokenizer = text::Tokenizer::Load(tokenizers + "/" + folder).value();
    Compare(tokenizer, *answer);
    if (HasFatalFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace penstock::router
