#include "router/api/responses/dialect.h"

#include <string>
#include <vector>

#include "router/api/docs/shapes.h"
#include "router/api/openai/dialect.h"
#include "router/api/responses/request.h"

namespace penstock::router::responses {
namespace {

constexpr docs::Shape kShapes[] = {
    {"OpenAiResponseText",
     "type:=input_text|output_text|reasoning_text text:string annotations?:object[] "
     "logprobs?:OpenAiLogprob[]"},
    {"OpenAiResponseItem",
     "id:string type:=message|function_call|function_call_output|reasoning "
     "status:=in_progress|completed|incomplete role?:string content?:OpenAiResponseText[] "
     "call_id?:string name?:string arguments?:string output?:string summary?:object[] "
     "encrypted_content?:string"},
    {"OpenAiResponseTool",
     "type:string name:string description:string? parameters:object? strict:boolean"},
    {"OpenAiInputTokensDetails", "cached_tokens:integer cache_write_tokens:integer"},
    {"OpenAiResponseUsage",
     "input_tokens:integer input_tokens_details:OpenAiInputTokensDetails output_tokens:integer "
     "output_tokens_details:CompletionTokensDetails total_tokens:integer"},
    {"OpenAiResponseError", "code:string message:string"},
    {"OpenAiIncomplete", "reason:string"},
    {"OpenAiResponseFormat", "type:string name?:string schema?:object strict?:boolean"},
    {"OpenAiResponseTextOptions", "format:OpenAiResponseFormat"},
    {"OpenAiResponseReasoning", "effort:string? summary:string?"},
    {"OpenAiResponse",
     "id:string object:string created_at:integer completed_at:integer? "
     "status:=in_progress|completed|incomplete|failed|cancelled error:OpenAiResponseError? "
     "incomplete_details:OpenAiIncomplete? model:string output:OpenAiResponseItem[] "
     "background:boolean instructions:string? max_output_tokens:integer? metadata:object "
     "parallel_tool_calls:boolean previous_response_id:string? "
     "reasoning:OpenAiResponseReasoning store:boolean temperature:number "
     "text:OpenAiResponseTextOptions tool_choice:string,object tools:OpenAiResponseTool[] "
     "top_logprobs:integer top_p:number truncation:string usage?:OpenAiResponseUsage"},
    {"OpenAiResponseEvent",
     "type:string sequence_number:integer response?:OpenAiResponse item?:OpenAiResponseItem "
     "part?:OpenAiResponseText item_id?:string output_index?:integer content_index?:integer "
     "delta?:string text?:string logprobs?:OpenAiLogprob[] name?:string arguments?:string "
     "code?:string message?:string param?:string?"},
    {"OpenAiResponseDeleted", "id:string object:string deleted:boolean"},
    {"OpenAiResponseItems",
     "object:string data:OpenAiResponseItem[] first_id:string last_id:string has_more:boolean"},
};

std::vector<Route> Routes(const StoreLimits& limits) {
  const auto store = std::make_shared<Store>(limits);
  const auto with_store = [&store](auto handler) {
    return [store, handler](ApiContext& context, const HttpRequest& http,
                            const std::shared_ptr<Exchange>& exchange) {
      handler(context, store, http, exchange);
    };
  };
  const RouteDoc object = {.contents = {{{kJson, "OpenAiResponse"}}}};
  // A pattern that ends with {id} matches all that is longer, so the others stand before it.
  return {
      Post("/v1/responses", with_store(Create),
           {.body = "OpenAiResponseRequest",
            .contents = {{{kJson, "OpenAiResponse"}, {kEvents, "OpenAiResponseEvent"}}},
            .failure = "OpenAiResponseEvent"}),
      Get("/v1/responses/{id}/input_items", with_store(InputItems),
          {.contents = {{{kJson, "OpenAiResponseItems"}}}}),
      Post("/v1/responses/{id}/cancel", with_store(Cancel), object),
      Get("/v1/responses/{id}", with_store(Retrieve), object),
      router::Delete("/v1/responses/{id}", with_store(responses::Delete),
                     {.contents = {{{kJson, "OpenAiResponseDeleted"}}}}),
  };
}

class ResponsesDialect final : public Dialect {
 public:
  explicit ResponsesDialect(const StoreLimits& limits) : Dialect(Routes(limits)) {}
  const ErrorFormat& Errors() const override { return openai::Errors(); }
  void AppendSchemas(std::string& out) const override {
    AppendRequestSchema(out);
    docs::AppendShapes(out, kShapes);
  }
};

}  // namespace

std::unique_ptr<const Dialect> MakeDialect(const StoreLimits& limits) {
  return std::make_unique<ResponsesDialect>(limits);
}

}  // namespace penstock::router::responses
