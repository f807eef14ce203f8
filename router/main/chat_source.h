// Finds the chat template: in --tokenizer-config-path, or else in the model's folder.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "text/tokenizer.h"

namespace penstock::router {

struct ChatSource {
  std::string plain;
  std::optional<std::string>
      with_tools;  // the template for conversations with tools, if it has its own
};

// Errors: NotFound if the model has none; InvalidArgument if a given file cannot be read or has
// none.
absl::StatusOr<ChatSource> FindChatSource(const text::Tokenizer& tokenizer,
                                          const std::string& config_path);

// The templates of a tokenizer_config.json: `chat_template` is a text, or a list of {name,
// template} with one named "default".
absl::StatusOr<ChatSource> ParseChatSource(const std::string& config_json);

}  // namespace penstock::router
