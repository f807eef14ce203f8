#include "router/api/tgi/chat/chat_prepare.h"
#include "router/api/adapters.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "router/api/tgi/chat/tools.h"
#include "router/api/tgi/dialect.h"

namespace penstock::router::tgi {
namespace {

constexpr std::string_view kToolPrompt =
    "\nGiven the functions available, please respond with a JSON for a function call with its "
    "proper arguments that best answers the given prompt. Respond in the format {name: function "
    "name, parameters: dictionary of argument name and its value}.Do not use variables.\n";

Parameters ToParameters(const ChatRequest& chat) {
  Parameters p;
  p.do_sample = !chat.temperature || *chat.temperature != 0.0f;
  if (p.do_sample) p.temperature = chat.temperature;
  if (chat.presence_penalty) p.repetition_penalty = *chat.presence_penalty + 2.0f;
  p.frequency_penalty = chat.frequency_penalty;
  p.top_p = chat.top_p;
  p.max_new_tokens = chat.max_tokens;
  p.stop = chat.stop.value_or(std::vector<std::string>());
  p.details = true;
  p.seed = chat.seed;
  p.top_n_tokens = chat.top_logprobs;
  if (chat.model && *chat.model != "tgi") p.adapter_id = chat.model;
  return p;
}

// All white space of Unicode.
std::string WithoutEndingBlanks(std::string text) {
  constexpr std::string_view kBlanks[] = {
      " ",      "\n",     "\t",     "\r",     "\f",     "\v",     "\u0085", "\u00a0", "\u1680",
      "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008",
      "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  const auto ends = [&text](std::string_view blank) { return text.ends_with(blank); };
  for (const auto* blank = std::ranges::find_if(kBlanks, ends); blank != std::end(kBlanks);
       blank = std::ranges::find_if(kBlanks, ends)) {
    text.resize(text.size() - blank->size());
  }
  return text;
}

// The client began the answer, so the model continues it: the prompt ends after its content.
std::string ContinueLast(std::string rendered, const Message& last) {
  if (last.role != "assistant") return rendered;
  const std::size_t found = rendered.rfind(last.content);
  if (found == rendered.npos) return rendered;
  rendered.resize(found + last.content.size());
  return WithoutEndingBlanks(std::move(rendered));
}

}  // namespace

void PrepareChat(const ApiContext& context, const ChatRequest& chat,
                 std::function<void(std::variant<PreparedChat, ApiError>)> done) {
  PreparedChat prepared;
  prepared.request.parameters = ToParameters(chat);
  // The name of a model that is no adapter selects nothing.
  auto& adapter = prepared.request.parameters.adapter_id;
  if (adapter && !SelectsAdapter(context.engine, *adapter)) adapter.reset();
  prepared.request.add_special_tokens = false;
  std::vector<Message> messages = chat.messages;
  ChatInput input;
  if (chat.response_format) {
    if (chat.tools) {
      return done(ApiError{ApiErrorKind::kTool, "Grammar and tools are mutually exclusive", ""});
    }
    prepared.request.parameters.grammar = chat.response_format;
  } else if (chat.tools) {
    auto outcome = OfferTools(*chat.tools, chat.tool_choice);
    if (auto* error = std::get_if<ApiError>(&outcome)) return done(std::move(*error));
    if (auto& offered = std::get<std::optional<OfferedTools>>(outcome)) {
      prepared.uses_tools = true;
      prepared.request.parameters.grammar.emplace().schema = std::move(offered->schema);
      const std::string& own = chat.tool_prompt.value_or("");
      std::string text = "\n---\n";
      if (!context.engine.Facts().template_has_tools) text += ToolsText(offered->tools) + "\n";
      text += own.empty() ? std::string(kToolPrompt) : own;
      if (!messages.empty() && !messages.back().is_calls) messages.back().content += text;
      input.tools_json = TemplateToolsJson(offered->tools);
    }
  }
  input.messages_json = MessagesJson(messages);
  Message last;
  if (!messages.empty()) last = std::move(messages.back());
  context.engine.Render(std::move(input), [&options = context.options,
                                           prepared = std::move(prepared), last = std::move(last),
                                           done = std::move(done)](RenderedChat rendered) mutable {
    if (const auto* error = std::get_if<GenerationError>(&rendered)) {
      return done(Errors().FromEngine(*error, options));
    }
    prepared.request.inputs = ContinueLast(std::get<std::string>(std::move(rendered)), last);
    done(std::move(prepared));
  });
}

}  // namespace penstock::router::tgi
