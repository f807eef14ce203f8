#include "router/api/tgi/flow.h"

#include <utility>

#include "router/api/json/unicode.h"
#include "router/api/run.h"
#include "router/api/tgi/answer.h"

namespace penstock::router::tgi {
namespace {

AnswerStyle MakeStyle(const ApiContext& context, const Request& request, const Flow& flow,
                      Time arrived) {
  const Parameters& p = request.parameters;
  AnswerStyle style;
  style.details = p.details || p.decoder_input_details;
  if (flow.mode == Mode::kStream) style.details = p.details;
  style.prefill = p.decoder_input_details;
  style.in_array = flow.compat;
  // TGI gives the full text on / for every model without a known pipeline tag.
  if (p.return_full_text.value_or(flow.compat)) style.prefix = request.inputs;
  style.characters = json::CountCharacters(request.inputs);
  style.compute_type = context.options.compute_type;
  if (style.compute_type.empty()) style.compute_type = context.engine.Facts().device;
  style.arrived = arrived;
  return style;
}

}  // namespace

void Serve(ApiContext& context, const Flow& wanted, HttpRequest http,
           std::shared_ptr<Exchange> exchange) {
  context.metrics.RequestArrived(wanted.route);
  Parsed parsed = ParseRequest(http.body, wanted.compat);
  context.metrics.UnknownKeys(Name(Dialect::kTgi), parsed.unknown_keys);
  if (parsed.error) {
    RefuseRequest(context, *exchange, Dialect::kTgi, *parsed.error);
    return;
  }
  const Request& request = parsed.request;
  Flow flow = wanted;
  if (flow.compat) flow.mode = request.stream ? Mode::kStream : Mode::kPlain;
  AnswerStyle style = MakeStyle(context, request, flow, http.head.arrived);
  const auto refuse = [&](const ApiError& error) {
    if (flow.mode == Mode::kPlain) {
      RefuseRequest(context, *exchange, Dialect::kTgi, error);
      return;
    }
    context.metrics.RequestFailed(RowOf(error.kind).name);
    StreamError(*exchange, style, error);
  };
  if (const auto error = CheckBeforePermit(context.options, request, flow.mode)) {
    refuse(*error);
    return;
  }
  std::optional<Permit> permit = context.permits.Take(Candidates(request));
  if (!permit) {
    refuse({ApiErrorKind::kOverloaded, "Model is overloaded", ""});
    return;
  }
  auto lowered = Lower(context, request, flow.mode, http.head.request_id);
  if (const auto* error = std::get_if<ApiError>(&lowered)) {
    refuse(*error);
    return;
  }
  RunPlan plan;
  plan.dialect = Dialect::kTgi;
  plan.candidates = std::get<std::vector<GenerationRequest>>(std::move(lowered));
  plan.writer = flow.mode == Mode::kStream
                    ? MakeStreamAnswer(exchange, std::move(style))
                    : MakePlainAnswer(exchange, std::move(style), plan.candidates.size());
  plan.permit = *std::move(permit);
  plan.arrived = http.head.arrived;
  StartRun(context, std::move(exchange), std::move(plan));
}

}  // namespace penstock::router::tgi
