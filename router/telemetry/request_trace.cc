#include "router/telemetry/request_trace.h"

#include <chrono>
#include <string>
#include <utility>

namespace penstock::router {
namespace {

std::string MillisecondsText(Duration duration) {
  const double value = std::chrono::duration<double, std::milli>(duration).count();
  return std::to_string(value) + "ms";
}

// The attribute names of TGI's traces.
void AddTimings(std::vector<SpanAttribute>& attributes, const GenerationEnd& end) {
  const RequestTimings& timings = end.timings;
  const Duration per_token = end.generated_tokens > 0
                                 ? timings.inference / static_cast<int>(end.generated_tokens)
                                 : Duration(0);
  attributes.push_back({"total_time", MillisecondsText(timings.total)});
  attributes.push_back({"validation_time", MillisecondsText(timings.validation)});
  attributes.push_back({"queue_time", MillisecondsText(timings.queue)});
  attributes.push_back({"inference_time", MillisecondsText(timings.inference)});
  attributes.push_back({"time_per_token", MillisecondsText(per_token)});
  attributes.push_back({"seed", end.sampled ? std::to_string(end.seed) : "None"});
}

void AddCounts(std::vector<SpanAttribute>& attributes, const GenerationEnd& end,
               std::string_view reason) {
  attributes.push_back({"gen_ai.usage.input_tokens", std::int64_t{end.prompt_tokens}});
  attributes.push_back({"gen_ai.usage.output_tokens", std::int64_t{end.generated_tokens}});
  attributes.push_back({"penstock.cached_tokens", std::int64_t{end.cached_tokens}});
  attributes.push_back({"penstock.finish_reason", std::string(reason)});
}

void AddParameters(std::vector<SpanAttribute>& attributes, const GenerationRequest& request,
                   std::size_t candidates) {
  const SamplingParams& sampling = request.sampling;
  attributes.push_back({"penstock.request_id", request.client_id});
  attributes.push_back({"penstock.candidates", static_cast<std::int64_t>(candidates)});
  attributes.push_back({"gen_ai.request.temperature", double{sampling.temperature}});
  attributes.push_back({"gen_ai.request.top_p", double{sampling.top_p}});
  attributes.push_back({"gen_ai.request.top_k", static_cast<std::int64_t>(sampling.top_k)});
  if (request.max_new_tokens) {
    attributes.push_back({"gen_ai.request.max_tokens", std::int64_t{*request.max_new_tokens}});
  }
}

}  // namespace

RequestTrace RequestTrace::Begin(std::shared_ptr<SpanSink> sink,
                                 std::vector<GenerationRequest>& requests, Time arrived) {
  RequestTrace trace;
  if (sink == nullptr || requests.empty()) return trace;
  const GenerationRequest& first = requests.front();
  TraceContext own;
  if (first.trace) {
    own = *first.trace;
    trace.request_.parent = first.trace->span;
  } else {
    own.trace = NewTraceId();
    own.sampled = true;
  }
  own.span = NewSpanId();
  if (own.sampled) {
    trace.sink_ = std::move(sink);
    trace.request_.context = own;
    trace.request_.name = first.operation;
    trace.request_.is_server = true;
    trace.request_.begin = arrived;
    AddParameters(trace.request_.attributes, first, requests.size());
  }
  for (GenerationRequest& request : requests) request.trace = own;
  return trace;
}

Span RequestTrace::Part(std::string_view name, Time begin, Time end, std::size_t candidate) const {
  Span part;
  part.context = request_.context;
  part.context.span = NewSpanId();
  part.parent = request_.context.span;
  part.name = name;
  part.begin = begin;
  part.end = end;
  part.attributes.push_back({"penstock.candidate", static_cast<std::int64_t>(candidate)});
  return part;
}

void RequestTrace::Ended(std::size_t candidate, const GenerationEnd& end, std::string_view reason) {
  if (sink_ == nullptr) return;
  const RequestTimings& timings = end.timings;
  const Time over = SteadyNow();
  const Time submitted = over - timings.total;
  const Time queued = submitted + timings.validation;
  const Time started = queued + timings.queue;
  const Time first_token = submitted + timings.first_token;
  parts_.push_back(Part("queue", queued, started, candidate));
  parts_.push_back(Part("prefill", started, first_token, candidate));
  parts_.push_back(Part("decode", first_token, over, candidate));
  parts_.back().attributes.push_back(
      {"gen_ai.usage.output_tokens", std::int64_t{end.generated_tokens}});
  if (candidate != 0) return;
  AddTimings(request_.attributes, end);
  AddCounts(request_.attributes, end, reason);
}

void RequestTrace::Times(const TimeTotals& totals) {
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (totals[i] == Duration{0}) continue;
    request_.attributes.push_back(
        {kTimeAttributes[i], std::chrono::duration<double, std::milli>(totals[i]).count()});
  }
}

void RequestTrace::Finish(std::string_view error) {
  if (sink_ == nullptr) return;
  request_.end = SteadyNow();
  request_.error = error;
  parts_.push_back(std::move(request_));
  std::exchange(sink_, nullptr)->Take(std::move(parts_));
}

}  // namespace penstock::router
