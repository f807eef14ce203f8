// `tools`, `tool_choice` and what else says which calls an answer may have.
#pragma once

#include <memory>
#include <string_view>
#include <variant>

#include "router/answer/tool_set.h"
#include "router/api/context.h"
#include "router/api/openai/request.h"

namespace penstock::router::openai {

struct ToolChoice {
  std::shared_ptr<const answer::ToolSet> tools;  // that may be called; null: none
  bool required = false;                         // the answer must have a call
  bool named = false;                            // of a tool that the request names

  // Calls must match a grammar: one is required, or a tool is strict.
  bool NeedsGrammar() const;
};

// The tools of a chat. Errors name the key: a tool that is malformed, a choice of a tool that is
// not there, or tools that the model's format cannot call.
std::variant<ToolChoice, ApiError> ChooseTools(const ApiContext& context,
                                               const ChatRequest& request);

// Names the fields of tools as a dialect does whose tools have no `function`. `schema` is its key
// of the parameters.
void RenameToolFields(ApiError& error, std::string_view schema);

}  // namespace penstock::router::openai
