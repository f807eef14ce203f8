// The handlers of both kinds of completions.
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "router/api/hints.h"
#include "router/api/openai/answer.h"
#include "router/api/openai/dialect.h"
#include "router/api/openai/lower.h"
#include "router/api/openai/request.h"
#include "router/api/run.h"

namespace penstock::router::openai {
namespace {

// Takes permits and starts the run, or answers with the error.
void Launch(ApiContext& context, const Common& request, AnswerStyle style, Lowered lowered,
            const RequestHead& head, std::shared_ptr<Exchange> exchange) {
  if (const auto* error = std::get_if<ApiError>(&lowered)) {
    RefuseRequest(context, *exchange, Errors(), *error);
    return;
  }
  auto& candidates = std::get<std::vector<GenerationRequest>>(lowered);
  if (const auto error = ApplyHints(head, candidates)) {
    RefuseRequest(context, *exchange, Errors(), *error);
    return;
  }
  RunPlan plan;
  plan.errors = &Errors();
  plan.candidates = std::move(candidates);
  auto permit = context.permits.Take(static_cast<std::uint32_t>(plan.candidates.size()));
  if (!permit) {
    RefuseRequest(context, *exchange, Errors(),
                  TooManyRequests(context.options.max_concurrent_requests));
    return;
  }
  style.choices = plan.candidates.size();
  style.choices_per_prompt = request.n.value_or(1);
  style.include_usage = request.stream_options.include_usage;
  plan.writer = request.stream ? MakeStreamAnswer(exchange, std::move(style))
                               : MakePlainAnswer(exchange, std::move(style));
  plan.permit = *std::move(permit);
  plan.arrived = head.arrived;
  StartRun(context, std::move(exchange), std::move(plan));
}

template <class T>
bool Accepted(ApiContext& context, std::string_view route, const Parsed<T>& parsed,
              Exchange& exchange) {
  context.metrics.requests().Arrived(route);
  context.metrics.requests().UnknownKeys("openai", parsed.unknown_keys);
  if (!parsed.error) return true;
  RefuseRequest(context, exchange, Errors(), *parsed.error);
  return false;
}

}  // namespace

void ChatCompletions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<ChatRequest> parsed = ParseChat(http.body);
  if (!Accepted(context, "/v1/chat/completions", parsed, *exchange)) return;
  const ChatRequest& request = parsed.request;
  AnswerStyle style = MakeStyle(context, true, http.head.request_id);
  style.logprobs = request.logprobs;
  Lowered lowered = LowerChat(context, request, http.head.request_id);
  Launch(context, request, std::move(style), std::move(lowered), http.head, std::move(exchange));
}

void Completions(ApiContext& context, HttpRequest http, std::shared_ptr<Exchange> exchange) {
  const Parsed<CompletionRequest> parsed = ParseCompletion(http.body);
  if (!Accepted(context, "/v1/completions", parsed, *exchange)) return;
  const CompletionRequest& request = parsed.request;
  AnswerStyle style = MakeStyle(context, false, http.head.request_id);
  style.logprobs = request.logprobs.has_value();
  Lowered lowered = LowerCompletion(context, request, http.head.request_id);
  Launch(context, request, std::move(style), std::move(lowered), http.head, std::move(exchange));
}

}  // namespace penstock::router::openai
