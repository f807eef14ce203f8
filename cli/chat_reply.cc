#include "cli/chat_reply.h"

#include <boost/json/value.hpp>
#include <cstdio>

#include "common/json_parse.h"

namespace penstock::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 32;
constexpr double kLeastForRate = 0.01;  // seconds

// The value at a path of keys ("delta.content"); null if there is none.
const json::value* At(const json::value& root, std::string_view path) {
  const json::value* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    const json::object* object = at->if_object();
    at = object == nullptr ? nullptr : object->if_contains(path.substr(0, dot));
    path = dot == path.npos ? "" : path.substr(dot + 1);
  }
  return at;
}

std::string TextAt(const json::value& root, std::string_view path) {
  const json::value* at = At(root, path);
  return at == nullptr || !at->is_string() ? "" : std::string(at->as_string());
}

std::uint64_t NumberAt(const json::value& root, std::string_view path) {
  const json::value* at = At(root, path);
  return at == nullptr || !at->is_int64() || at->as_int64() < 0
             ? 0
             : static_cast<std::uint64_t>(at->as_int64());
}

}  // namespace

void ChatReply::Feed(std::string_view bytes, ChatClock::time_point now) {
  reader_.Feed(bytes, [&](std::string_view data) { TakeEvent(data, now); });
}

void ChatReply::TakeEvent(std::string_view data, ChatClock::time_point now) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const auto event = ParseJson(data, kMaxDepth);
  if (!event.ok()) return;
  if (At(*event, "error") != nullptr) error_ = ErrorMessage(std::string(data));
  if (const auto tokens = NumberAt(*event, "usage.completion_tokens"); tokens > 0) {
    tokens_ = tokens;
    prompt_ = NumberAt(*event, "usage.prompt_tokens");
    cached_ = NumberAt(*event, "usage.prompt_tokens_details.cached_tokens");
  }
  const json::value* choices = At(*event, "choices");
  if (choices == nullptr || !choices->is_array() || choices->as_array().empty()) return;
  const json::value& choice = choices->as_array().front();
  std::string reasoning = TextAt(choice, "delta.reasoning_content");
  if (reasoning.empty()) reasoning = TextAt(choice, "delta.reasoning");
  const std::string text = TextAt(choice, "delta.content");
  if (reasoning.empty() && text.empty()) return;
  if (pieces_++ == 0) first_ = now;
  last_ = now;
  if (!reasoning.empty()) on_text_(reasoning, true);
  if (!text.empty()) on_text_(text, false);
  text_ += text;
}

std::string ChatReply::Stats() const {
  if (pieces_ == 0) return "no answer yet";
  using Seconds = std::chrono::duration<double>;
  const std::uint64_t tokens = tokens_ > 0 ? tokens_ : pieces_;
  const double decode = Seconds(last_ - first_).count();
  char line[100];
  std::string text = std::to_string(tokens) + " tokens";
  if (decode >= kLeastForRate) {
    std::snprintf(line, sizeof line, ", %.1f tokens/s", static_cast<double>(tokens - 1) / decode);
    text += line;
  }
  std::snprintf(line, sizeof line, ", first after %.2f s", Seconds(first_ - begin_).count());
  text += line;
  if (tokens_ == 0) return text + "; the server named no usage";
  return text + "; prompt " + std::to_string(prompt_) + " tokens, " + std::to_string(cached_) +
         " of them cached";
}

std::string ErrorMessage(const std::string& body) {
  const auto parsed = ParseJson(body, kMaxDepth);
  if (!parsed.ok()) return body;
  for (const char* path : {"error.message", "message", "error"}) {
    if (std::string text = TextAt(*parsed, path); !text.empty()) return text;
  }
  return body;
}

}  // namespace penstock::cli
