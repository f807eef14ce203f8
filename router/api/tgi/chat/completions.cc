#include <utility>

#include "router/api/adapters.h"
#include "router/api/tgi/chat/chat_answer.h"
#include "router/api/tgi/chat/serve.h"
#include "router/api/tgi/dialect.h"
#include "router/api/tgi/generate/flow.h"
#include "router/api/tgi/handlers.h"

namespace penstock::router::tgi {
namespace {

std::optional<ApiError> CheckCompletion(const ApiContext& context,
                                        const CompletionRequest& request) {
  if (request.suffix) {
    return ApiError{ApiErrorKind::kSuffix,
                    "Suffix is not supported and can be achieved by preprocessing the prompt.",
                    "suffix"};
  }
  const std::uint32_t most = context.options.max_client_batch_size;
  if (request.prompt.texts.size() > most) {
    return ApiError{
        ApiErrorKind::kBatchSize,
        "Number of prompts exceeds the maximum allowed batch size of " + std::to_string(most),
        "prompt"};
  }
  return std::nullopt;
}

}  // namespace

void ServeCompletion(ApiContext& context, const RequestHead& head,
                     const CompletionRequest& completion, std::shared_ptr<Exchange> exchange) {
  if (const auto error = CheckCompletion(context, completion)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  std::string all;
  for (const std::string& text : completion.prompt.texts) all += text;
  OpenAiStyle style(context, context.engine.Facts().model_id);
  style.common = CommonStyle(context, all, head.arrived);
  Job job(head, exchange, completion.stream);
  job.requests = LowerCompletion(completion);
  for (Request& request : job.requests) {
    auto& adapter = request.parameters.adapter_id;
    if (adapter && !SelectsAdapter(context.engine, *adapter)) adapter.reset();
  }
  job.refuse = [exchange, style, stream = completion.stream,
                prompts = job.requests.size()](const ApiError& error) {
    if (stream) return FailStream(*exchange, style.common, false, error, prompts);
    exchange->Respond(Errors().Response(error));
  };
  job.make_writer = [exchange, style, stream = completion.stream](std::size_t candidates) {
    return stream ? MakeCompletionStream(exchange, style, candidates)
                  : MakeCompletionAnswer(exchange, style, candidates);
  };
  StartJob(context, std::move(job));
}

void Completions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<CompletionRequest> parsed = ParseCompletion(http.body);
  if (!Accept(context, "/v1/completions", "tgi", Errors(), parsed, *exchange)) return;
  ServeCompletion(context, http.head, parsed.request, std::move(exchange));
}

}  // namespace penstock::router::tgi
