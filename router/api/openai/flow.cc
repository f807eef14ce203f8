#include "router/api/openai/flow.h"

#include "router/api/hints.h"
#include "router/api/openai/dialect.h"

namespace penstock::router::openai {

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

}  // namespace penstock::router::openai
