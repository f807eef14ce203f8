#include "router/api/openai/prepare_chat.h"

#include <string_view>
#include <utility>

#include "router/api/openai/chat_template_inputs.h"
#include "router/api/openai/lower.h"

namespace penstock::router::openai {
namespace {

bool HasDeveloperRole(const ApiContext& context, const ChatRequest& request) {
  if (!request.chat_template) return context.engine.Facts().template_has_developer;
  return request.chat_template->text.find("developer") != std::string_view::npos;
}

}  // namespace

std::variant<PreparedChat, ApiError> PrepareChat(const ApiContext& context,
                                                 const ChatRequest& request,
                                                 const std::string& client_id) {
  auto choice = ChooseTools(context, request);
  if (auto* error = std::get_if<ApiError>(&choice)) return std::move(*error);
  auto messages =
      MessagesForTemplate(HasDeveloperRole(context, request) ? request.messages.json
                                                             : request.messages.WithSystemRoles(),
                          *context.options.answer_format);
  PreparedChat chat;
  chat.tools = std::get<ToolChoice>(std::move(choice));
  chat.earlier_calls = messages.calls;
  auto lowered = LowerChat(context, request, chat.tools, std::move(messages.json), client_id);
  if (auto* error = std::get_if<ApiError>(&lowered)) return std::move(*error);
  chat.candidates = std::get<std::vector<GenerationRequest>>(std::move(lowered));
  return chat;
}

}  // namespace penstock::router::openai
