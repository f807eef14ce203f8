#include "text/chat_template.h"

#include <ctime>
#include <utility>

#include "common/status.h"
#include "text/rust_call.h"

namespace penstock::text {
namespace {

std::int64_t LocalNow() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return static_cast<std::int64_t>(now) + local.tm_gmtoff;
}

penstock_conversation Raw(const Conversation& conversation, const TemplateLimits& limits) {
  penstock_conversation raw{};
  raw.messages_json = conversation.messages_json.data();
  raw.messages_json_size = conversation.messages_json.size();
  raw.tools_json = conversation.tools_json.data();
  raw.tools_json_size = conversation.tools_json.size();
  raw.kwargs_json = conversation.kwargs_json.data();
  raw.kwargs_json_size = conversation.kwargs_json.size();
  raw.add_generation_prompt = conversation.add_generation_prompt ? 1 : 0;
  raw.now_seconds = conversation.now_seconds ? *conversation.now_seconds : LocalNow();
  raw.max_input_bytes = limits.input_bytes;
  raw.max_output_bytes = limits.output_bytes;
  raw.max_steps = limits.steps;
  return raw;
}

}  // namespace

void ChatTemplate::Free::operator()(penstock_template* compiled) const {
  penstock_template_free(compiled);
}

absl::StatusOr<ChatTemplate::Handle> ChatTemplate::CompileOne(std::string_view source,
                                                              std::string_view globals_json) {
  penstock_template* compiled = nullptr;
  RustBytes error;
  const int32_t code = penstock_template_compile(source.data(), source.size(), globals_json.data(),
                                                 globals_json.size(), &compiled, error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return Handle(compiled);
}

absl::StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplate::Compile(
    std::string_view source, std::string_view globals_json) {
  PENSTOCK_ASSIGN_OR_RETURN(Handle plain, CompileOne(source, globals_json));
  return std::shared_ptr<const ChatTemplate>(new ChatTemplate(std::move(plain), nullptr));
}

absl::StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplate::Of(const Tokenizer& tokenizer) {
  const std::optional<std::string> source = tokenizer.ChatTemplateSource("");
  if (!source) return absl::NotFoundError("the model has no chat template");
  return With(tokenizer, *source, tokenizer.ChatTemplateSource("tool_use"));
}

absl::StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplate::With(
    const Tokenizer& tokenizer, std::string_view source,
    const std::optional<std::string>& tool_use) {
  const std::string globals = tokenizer.NamedTokensJson();
  PENSTOCK_ASSIGN_OR_RETURN(Handle plain, CompileOne(source, globals));
  Handle with_tools;
  if (tool_use) {
    PENSTOCK_ASSIGN_OR_RETURN(with_tools, CompileOne(*tool_use, globals));
  }
  return std::shared_ptr<const ChatTemplate>(
      new ChatTemplate(std::move(plain), std::move(with_tools)));
}

absl::StatusOr<std::string> ChatTemplate::Render(const Conversation& conversation,
                                                 const TemplateLimits& limits) const {
  const bool tools = with_tools_ != nullptr && !conversation.tools_json.empty();
  const penstock_conversation raw = Raw(conversation, limits);
  RustBytes text, error;
  const int32_t code = penstock_template_render(tools ? with_tools_.get() : plain_.get(), &raw,
                                                text.out(), error.out());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(code, error));
  return text.str();
}

}  // namespace penstock::text
