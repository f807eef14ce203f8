// The handler of POST /v1/responses.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/body.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/prepare_chat.h"
#include "router/api/responses/answer.h"
#include "router/api/responses/chat_messages.h"
#include "router/api/responses/dialect.h"
#include "router/api/responses/lower.h"
#include "router/api/responses/request.h"
#include "router/api/run.h"

namespace penstock::router::responses {
namespace {

// A text that a raw value of the request points into.
using Kept = std::string;

std::optional<ApiError> CheckFeatures(const Request& request) {
  if (request.background) {
    return Unsupported("background", "is not supported: a response ends with its connection");
  }
  if (request.conversation) {
    return Unsupported("conversation",
                       "is not supported: send the whole input or `previous_response_id`");
  }
  if (request.prompt) return Unsupported("prompt", "is not supported: templates are the client's");
  if (request.metadata && !request.metadata->text.starts_with('{')) {
    return MustBe("metadata", "an object", request.metadata->text.substr(0, 100));
  }
  const TextFormat& format = request.text.format;
  if (format.type != "text" && format.type != "json_object" && format.type != "json_schema") {
    return MustBe("text.format.type", "text, json_object or json_schema",
                  json::DescribeString(format.type));
  }
  if (format.type == "json_schema" && !format.schema) {
    return Invalid("text.format.schema", "is missing");
  }
  return std::nullopt;
}

// Fills in what chats have under other names. `tools` and `messages` must outlive the request.
std::optional<ApiError> FillChat(Request& request, const Kept& tools, const Kept& messages) {
  if (!request.function_tools.functions.empty()) request.tools = json::Raw{tools};
  json::Reader reader(messages, {.depth = 128});
  if (!ReadValue(reader, request.messages, "an array")) {
    return AboutResponse(FromJsonInWords(reader.error()));
  }
  const TextFormat& format = request.text.format;
  if (format.type != "text") {
    request.response_format.emplace().type = format.type;
    request.response_format->json_schema = openai::JsonSchemaFormat{.schema = format.schema};
  }
  request.reasoning_effort = request.reasoning.effort;
  request.logprobs = request.WantsLogprobs();
  return std::nullopt;
}

AnswerStyle MakeStyle(const ApiContext& context, const Request& request, ResponseFacts facts,
                      const openai::ToolChoice& choice, std::size_t earlier_calls) {
  AnswerStyle style;
  style.output = {.suffix = facts.suffix,
                  .format = context.options.answer_format,
                  .earlier_calls = earlier_calls,
                  .opaque_reasoning = request.include.encrypted_reasoning,
                  .stream = request.stream};
  style.facts = std::move(facts);
  style.read = {.tools = choice.tools, .parallel_calls = request.parallel_tool_calls};
  style.logprobs = request.logprobs;
  return style;
}

const ErrorFormat& ErrorsOf(const Request& request) {
  return openai::ErrorsAbout(
      {.prompt = "input",
       .length = request.max_completion_tokens ? "max_output_tokens" : "input",
       .grammar = "text.format"});
}

// Lowers the request and starts it, or says why it cannot.
std::optional<ApiError> Start(ApiContext& context, const std::shared_ptr<Store>& store,
                              Request& request, const RequestHead& head,
                              const std::shared_ptr<Exchange>& exchange) {
  if (auto error = CheckFeatures(request)) return error;
  if (!request.input && !request.previous_response_id) return Invalid("input", "is missing");
  ResponseFacts facts = MakeFacts(context, request, head.request_id);
  auto conversation = Conversation(*store, head.tenant, std::move(request.input).value_or(Input{}),
                                   request.previous_response_id, facts.suffix);
  if (auto* error = std::get_if<ApiError>(&conversation)) return std::move(*error);
  const auto& items = std::get<std::vector<Item>>(conversation);
  const Kept tools = ChatTools(request.function_tools.functions);
  const Kept chat = ChatMessages(request.instructions, items);
  if (auto error = FillChat(request, tools, chat)) return error;
  auto lowered = openai::PrepareChat(context, request, head.request_id);
  if (auto* error = std::get_if<ApiError>(&lowered)) return AboutResponse(std::move(*error));
  auto& prepared = std::get<openai::PreparedChat>(lowered);
  AnswerStyle style =
      MakeStyle(context, request, std::move(facts), prepared.tools, prepared.earlier_calls);
  style.errors = &ErrorsOf(request);
  if (request.store && store->enabled()) {
    style.store = store;
    style.tenant = head.tenant;
    style.input = std::make_shared<const std::string>(ItemsText(items));
  }
  Launch(context, head, *style.errors, std::move(prepared.candidates), exchange,
         [&](const std::vector<GenerationRequest>&) {
           return MakeAnswer(exchange, std::move(style));
         });
  return std::nullopt;
}

}  // namespace

void Create(ApiContext& context, const std::shared_ptr<Store>& store, const HttpRequest& http,
            const std::shared_ptr<Exchange>& exchange) {
  Parsed<Request> parsed = ParseRequest(http.body);
  if (!Accept(context, "/v1/responses", "openai", openai::Errors(), parsed, *exchange)) return;
  const auto error = Start(context, store, parsed.request, http.head, exchange);
  if (error) RefuseRequest(context, *exchange, openai::Errors(), *error);
}

}  // namespace penstock::router::responses
