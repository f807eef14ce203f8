#include "router/api/djl/dialect.h"

#include <optional>
#include <utility>

#include "router/api/djl/answer.h"
#include "router/api/djl/lower.h"
#include "router/api/djl/request.h"
#include "router/api/hints.h"
#include "router/http/back_thread.h"

namespace penstock::router::djl {
namespace {

// Everything that can be said before the engine is asked.
std::variant<RunPlan, ApiError> Plan(ApiContext& context, const DjlOptions& options,
                                     const RequestHead& head, const Request& request,
                                     const std::shared_ptr<Exchange>& exchange) {
  const auto formatter = FormatterOf(options, request);
  if (const auto* error = std::get_if<ApiError>(&formatter)) return *error;
  auto lowered = InBack([&] { return Lower(context, options, request, head.request_id); });
  if (auto* error = std::get_if<ApiError>(&lowered)) return std::move(*error);
  RunPlan plan;
  plan.errors = &Errors();
  plan.candidates = std::get<std::vector<GenerationRequest>>(std::move(lowered));
  plan.arrived = head.arrived;
  if (auto error = ApplyHints(head, plan.candidates)) return *std::move(error);
  const std::size_t most = context.options.max_concurrent_requests;
  if (plan.candidates.size() > most) {  // no later time would do
    return ApiError{ApiErrorKind::kValidation,
                    "`inputs` must have at most " + std::to_string(most) +
                        " entries: so many requests run and wait at the same time. Given: " +
                        std::to_string(plan.candidates.size()),
                    "inputs"};
  }
  auto permit = context.permits.Take(static_cast<std::uint32_t>(plan.candidates.size()));
  if (!permit) {
    return ApiError{ApiErrorKind::kOverloaded,
                    "The queue of jobs is full: at most " + std::to_string(most) +
                        " requests run and wait at the same time. Try again later",
                    ""};
  }
  plan.permit = *std::move(permit);
  plan.writer = MakeAnswer(exchange, StyleOf(options, request, std::get<Formatter>(formatter)));
  return plan;
}

}  // namespace

void Serve(ApiContext& context, const DjlOptions& options, std::string_view route,
           const HttpRequest& http, std::shared_ptr<Exchange> exchange) {
  context.metrics.RequestArrived(route);
  const Parsed parsed = InBack([&] { return ParseRequest(http.body); });
  context.metrics.UnknownKeys("djl", parsed.unknown_keys);
  if (parsed.error) return RefuseRequest(context, *exchange, Errors(), *parsed.error);
  auto plan = Plan(context, options, http.head, parsed.request, exchange);
  if (const auto* error = std::get_if<ApiError>(&plan)) {
    return RefuseRequest(context, *exchange, Errors(), *error);
  }
  StartRun(context, std::move(exchange), std::get<RunPlan>(std::move(plan)));
}

}  // namespace penstock::router::djl
