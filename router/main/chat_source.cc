#include "router/main/chat_source.h"

#include <boost/json/parse.hpp>
#include <fstream>
#include <sstream>

#include "common/status.h"

namespace penstock::router {
namespace {

// The string under `key`, if there is one.
std::optional<std::string> TextAt(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains({key.data(), key.size()});
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string(value->get_string());
}

absl::StatusOr<ChatSource> FromList(const boost::json::array& list) {
  std::optional<std::string> plain;
  ChatSource source;
  for (const boost::json::value& entry : list) {
    if (!entry.is_object()) continue;
    const std::string name = TextAt(entry.get_object(), "name").value_or("");
    if (name == "default") plain = TextAt(entry.get_object(), "template");
    if (name == "tool_use") source.with_tools = TextAt(entry.get_object(), "template");
  }
  if (!plain) return absl::InvalidArgumentError("chat_template must have one named default");
  source.plain = *std::move(plain);
  return source;
}

}  // namespace

absl::StatusOr<ChatSource> ParseChatSource(const std::string& config_json) {
  boost::system::error_code error;
  const boost::json::value config = boost::json::parse(config_json, error);
  if (error || !config.is_object()) {
    return absl::InvalidArgumentError("must be a JSON object");
  }
  const auto* given = config.get_object().if_contains("chat_template");
  if (given != nullptr && given->is_array()) return FromList(given->get_array());
  std::optional<std::string> text = TextAt(config.get_object(), "chat_template");
  if (!text) return absl::InvalidArgumentError("must have a chat_template");
  return ChatSource{.plain = *std::move(text)};
}

absl::StatusOr<ChatSource> FindChatSource(const text::Tokenizer& tokenizer,
                                          const std::string& config_path) {
  if (config_path.empty()) {
    std::optional<std::string> plain = tokenizer.ChatTemplateSource("");
    if (!plain) return absl::NotFoundError("the model has no chat template");
    return ChatSource{*std::move(plain), tokenizer.ChatTemplateSource("tool_use")};
  }
  std::ifstream file(config_path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file.good()) {
    return absl::InvalidArgumentError("--tokenizer-config-path " + config_path +
                                      ": cannot be read");
  }
  auto source = ParseChatSource(text.str());
  if (source.ok()) return source;
  return WithContext(source.status(), "--tokenizer-config-path " + config_path);
}

}  // namespace penstock::router
