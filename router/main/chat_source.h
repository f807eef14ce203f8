// Where chats get their template from: --tokenizer-config-path, else the model's folder.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace penstock::router {

struct ChatSource {
  std::string plain;
  std::optional<std::string> with_tools;  // a template of its own for conversations with tools
};

// NotFound when the model has none. A given file must be readable and hold one: InvalidArgument.
absl::StatusOr<ChatSource> FindChatSource(const text::Tokenizer& tokenizer,
                                          const std::string& config_path);

// The templates of a tokenizer_config.json: `chat_template` is a text, or a list of {name,
// template} with one named "default".
absl::StatusOr<ChatSource> ParseChatSource(const std::string& config_json);

}  // namespace penstock::router
