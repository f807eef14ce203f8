#include "tools/bench/awscurl/answer_text.h"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "tools/bench/sse_reader.h"

namespace penstock::bench::awscurl {
namespace {

namespace json = boost::json;

// `token.text`, else `generated_text`; of every element where the value is an array.
void Collect(const json::value& value, std::vector<std::string>& texts) {
  if (const auto* array = value.if_array()) {
    for (const json::value& element : *array) Collect(element, texts);
    return;
  }
  const auto* object = value.if_object();
  if (object == nullptr) return;
  if (const json::value* token = object->if_contains("token")) {
    const auto* fields = token->if_object();
    const json::value* text = fields == nullptr ? nullptr : fields->if_contains("text");
    if (text != nullptr && text->is_string()) texts.emplace_back(text->as_string());
    return;
  }
  const json::value* text = object->if_contains("generated_text");
  if (text != nullptr && text->is_string()) texts.emplace_back(text->as_string());
}

bool Add(std::string_view text, std::vector<std::string>& texts) {
  boost::system::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error);
  if (!error) Collect(value, texts);
  return !error;
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text;
  return all;
}

}  // namespace

std::optional<std::vector<std::string>> AnswerTexts(std::string_view content_type,
                                                    std::string_view body) {
  std::vector<std::string> texts;
  bool good = true;
  if (content_type.starts_with("text/event-stream")) {
    SseReader reader;
    reader.Feed(body, [&](std::string_view event) { good = Add(event, texts) && good; });
  } else if (content_type.starts_with("application/jsonlines")) {
    while (!body.empty()) {
      const std::string_view line = body.substr(0, body.find('\n'));
      body.remove_prefix(std::min(body.size(), line.size() + 1));
      if (!line.empty()) good = Add(line, texts) && good;
    }
    texts = {Joined(texts)};
  } else {
    good = Add(body, texts);
  }
  return good ? std::optional(std::move(texts)) : std::nullopt;
}

std::size_t CountWords(std::string_view text) {
  std::size_t words = 0;
  bool blank = true;
  for (const char c : text) {
    const bool now = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    words += blank && !now ? 1 : 0;
    blank = now;
  }
  return words;
}

}  // namespace penstock::bench::awscurl
