#include "router/stream/volatile_lines.h"

#include <absl/strings/ascii.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string_view>

namespace penstock::router {
namespace {

namespace json = boost::json;

constexpr std::string_view kBeginnings[] = {"x-anthropic-billing-header:", "today's date",
                                            "current date"};
constexpr std::size_t kLongest = 40;  // more than any beginning, with a `The`

bool IsVolatile(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string beginning = absl::AsciiStrToLower(std::string(line.substr(0, kLongest)));
  std::string_view words = beginning;
  if (words.starts_with("the ")) words.remove_prefix(4);
  return std::ranges::any_of(kBeginnings,
                             [words](std::string_view known) { return words.starts_with(known); });
}

// Returns whether it changed the text.
bool DropLines(json::value& text) {
  const std::string_view all = text.get_string();
  std::string kept;
  bool changed = false;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\n', begin), all.size() - 1) + 1;
    const std::string_view line = all.substr(begin, end - begin);
    if (IsVolatile(line)) {
      changed = true;
    } else {
      kept += line;
    }
    begin = end;
  }
  if (changed) text = kept;
  return changed;
}

bool DropFrom(json::object& message) {
  const json::value* role = message.if_contains("role");
  if (role == nullptr || (*role != "system" && *role != "developer")) return false;
  json::value* content = message.if_contains("content");
  if (content == nullptr) return false;
  if (content->is_string()) return DropLines(*content);
  if (!content->is_array()) return false;
  bool changed = false;
  for (json::value& part : content->get_array()) {
    json::value* text = part.is_object() ? part.get_object().if_contains("text") : nullptr;
    if (text != nullptr && text->is_string()) changed = DropLines(*text) || changed;
  }
  return changed;
}

}  // namespace

std::string WithoutVolatileLines(const std::string& messages_json) {
  boost::system::error_code error;
  json::value messages = json::parse(messages_json, error);
  if (error || !messages.is_array()) return messages_json;
  bool changed = false;
  for (json::value& message : messages.get_array()) {
    if (message.is_object()) changed = DropFrom(message.get_object()) || changed;
  }
  return changed ? json::serialize(messages) : messages_json;
}

}  // namespace penstock::router
