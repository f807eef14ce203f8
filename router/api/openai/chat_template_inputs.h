// What a chat template is given of a request.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "router/answer/format.h"
#include "router/api/context.h"
#include "router/api/openai/request.h"
#include "router/json/writer.h"

namespace penstock::router::openai {

struct TemplateMessages {
  std::string json;
  std::size_t calls = 0;       // in earlier answers
  std::string text_arguments;  // ChatInput's
};

// Templates want the arguments of earlier calls as objects, save those of some formats, and earlier
// reasoning as `reasoning_content`. Messages without either stay as they are.
TemplateMessages MessagesForTemplate(const std::string& messages_json,
                                     const answer::Format& format);

// The messages of a request for the template that it uses, or what is wrong with earlier calls.
std::variant<TemplateMessages, ApiError> MessagesOf(const ApiContext& context,
                                                    const ChatRequest& request);

// The client's variables, and `reasoning_effort` as the templates know it: low, medium or high.
// The effort none becomes enable_thinking: false. Empty if there are none.
std::string VariablesForTemplate(const std::optional<json::Raw>& given,
                                 const std::optional<std::string>& reasoning_effort);

}  // namespace penstock::router::openai
