#include "router/api/openai/prepare_chat.h"

#include <utility>

#include "router/api/openai/chat_template_inputs.h"
#include "router/api/openai/lower.h"

namespace penstock::router::openai {

std::variant<PreparedChat, ApiError> PrepareChat(const ApiContext& context,
                                                 const ChatRequest& request,
                                                 const std::string& client_id) {
  auto choice = ChooseTools(context, request);
  if (auto* error = std::get_if<ApiError>(&choice)) return std::move(*error);
  auto messages = MessagesOf(context, request);
  if (auto* error = std::get_if<ApiError>(&messages)) return std::move(*error);
  PreparedChat chat;
  chat.tools = std::get<ToolChoice>(std::move(choice));
  chat.earlier_calls = std::get<TemplateMessages>(messages).calls;
  auto lowered = LowerChat(context, request, chat.tools,
                           std::get<TemplateMessages>(std::move(messages)), client_id);
  if (auto* error = std::get_if<ApiError>(&lowered)) return std::move(*error);
  chat.candidates = std::get<std::vector<GenerationRequest>>(std::move(lowered));
  return chat;
}

}  // namespace penstock::router::openai
