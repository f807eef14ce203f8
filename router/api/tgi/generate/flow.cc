#include "router/api/tgi/generate/flow.h"

#include <iterator>
#include <utility>

#include "router/api/guard.h"
#include "router/api/tgi/dialect.h"
#include "router/json/unicode.h"

namespace penstock::router::tgi {
namespace {

AnswerStyle MakeStyle(const ApiContext& context, const Request& request, const Flow& flow,
                      Time arrived) {
  const Parameters& p = request.parameters;
  AnswerStyle style = CommonStyle(context, request.inputs, arrived);
  style.details = p.details || p.decoder_input_details;
  if (flow.mode == Mode::kStream) style.details = p.details;
  style.prefill = p.decoder_input_details;
  style.in_array = flow.compat;
  // TGI gives the full text on / for every model without a known pipeline tag.
  if (p.return_full_text.value_or(flow.compat)) style.prefix = request.inputs;
  return style;
}

}  // namespace

AnswerStyle CommonStyle(const ApiContext& context, std::string_view inputs, Time arrived) {
  AnswerStyle style;
  style.characters = json::CountCharacters(inputs);
  style.compute_type = context.options.compute_type;
  if (style.compute_type.empty()) style.compute_type = context.engine.Facts().device;
  style.arrived = arrived;
  return style;
}

void StartJob(ApiContext& context, Job job) {
  const auto refuse = [&](ApiError error) {
    AdviseRetry(context, error);
    CountRefusal(context, *job.exchange, error);
    job.refuse(error);
  };
  if (const auto error = CheckBeforePermit(context.options, job.requests.front(), job.mode)) {
    return refuse(*error);
  }
  if (const auto* error = std::get_if<ApiError>(&job.hints)) return refuse(*error);
  std::uint32_t count = 0;
  for (const Request& request : job.requests) count += Candidates(request);
  std::optional<Permit> permit = context.permits.Take(count);
  if (!permit) return refuse({ApiErrorKind::kOverloaded, "Model is overloaded", ""});
  RunPlan plan;
  for (const Request& request : job.requests) {
    auto lowered = Lower(context, request, job.mode, job.client_id);
    if (const auto* error = std::get_if<ApiError>(&lowered)) return refuse(*error);
    auto& candidates = std::get<std::vector<GenerationRequest>>(lowered);
    std::move(candidates.begin(), candidates.end(), std::back_inserter(plan.candidates));
  }
  if (auto error = Enter(context, std::get<Hints>(job.hints), plan.candidates, *permit)) {
    return refuse(*std::move(error));
  }
  plan.errors = &Errors();
  plan.writer = job.make_writer(plan.candidates.size());
  plan.permit = *std::move(permit);
  plan.arrived = job.arrived;
  plan.read = job.read;
  plan.timeout = std::get<Hints>(job.hints).timeout;
  StartRun(context, std::move(job.exchange), std::move(plan));
}

void Serve(ApiContext& context, const Flow& wanted, HttpRequest http,
           std::shared_ptr<Exchange> exchange) {
  Parsed<Request> parsed = ParseRequest(http.body, wanted.compat);
  if (!Accept(context, wanted.route, "tgi", Errors(), parsed, *exchange)) return;
  Serve(context, wanted, http.head, std::move(parsed.request), std::move(exchange));
}

void Serve(ApiContext& context, const Flow& wanted, const RequestHead& head, Request request,
           std::shared_ptr<Exchange> exchange) {
  Flow flow = wanted;
  if (!flow.own_keys) request.parameters.penalty_alpha = {};
  if (flow.compat) flow.mode = request.stream ? Mode::kStream : Mode::kPlain;
  const AnswerStyle style = MakeStyle(context, request, flow, head.arrived);
  Job job(head, exchange, flow.mode == Mode::kStream);
  job.refuse = [exchange, style, mode = flow.mode](const ApiError& error) {
    if (mode == Mode::kStream) return StreamError(*exchange, style, error);
    exchange->Respond(Errors().Response(error));
  };
  job.make_writer = [exchange, style, mode = flow.mode](std::size_t candidates) {
    return mode == Mode::kStream ? MakeStreamAnswer(exchange, style)
                                 : MakePlainAnswer(exchange, style, candidates);
  };
  job.requests.push_back(std::move(request));
  StartJob(context, std::move(job));
}

}  // namespace penstock::router::tgi
