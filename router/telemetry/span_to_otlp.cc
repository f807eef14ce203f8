#include "router/telemetry/span_to_otlp.h"

#include <algorithm>
#include <chrono>
#include <type_traits>

namespace penstock::router {
namespace {

constexpr int kInternal = 1;
constexpr int kServer = 2;
constexpr int kError = 2;

template <class Id>
std::string Bytes(const Id& id) {
  return {id.begin(), id.end()};
}

// Wall clock minus steady clock.
Duration ClockDifference() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<Duration>(wall) - SteadyNow().time_since_epoch();
}

void SetText(otlp::OtlpKeyValue& out, std::string_view key, const std::string& text) {
  out.set_key(std::string(key));
  out.mutable_value()->set_string_value(text);
}

void Convert(const SpanAttribute& attribute, otlp::OtlpKeyValue& out) {
  out.set_key(std::string(attribute.key));
  otlp::OtlpValue& value = *out.mutable_value();
  if (const auto* text = std::get_if<std::string>(&attribute.value)) value.set_string_value(*text);
  if (const auto* whole = std::get_if<std::int64_t>(&attribute.value)) value.set_int_value(*whole);
  if (const auto* real = std::get_if<double>(&attribute.value)) value.set_double_value(*real);
  if (const auto* flag = std::get_if<bool>(&attribute.value)) value.set_bool_value(*flag);
}

void Convert(const Span& span, Duration difference, const std::string& scheme,
             otlp::OtlpSpan& out) {
  const auto unix_nanoseconds = [difference](Time time) {
    return static_cast<std::uint64_t>((time.time_since_epoch() + difference).count());
  };
  out.set_trace_id(Bytes(span.context.trace));
  out.set_span_id(Bytes(span.context.span));
  out.set_trace_state(span.context.state);
  if (span.parent != SpanId{}) out.set_parent_span_id(Bytes(span.parent));
  out.set_name(span.name);
  out.set_kind(span.is_server ? kServer : kInternal);
  out.set_start_time_unix_nano(unix_nanoseconds(span.begin));
  out.set_end_time_unix_nano(unix_nanoseconds(std::max(span.begin, span.end)));
  out.set_flags(span.context.sampled ? 1 : 0);
  if (span.is_server) SetText(*out.add_attributes(), "url.scheme", scheme);
  for (const SpanAttribute& attribute : span.attributes) Convert(attribute, *out.add_attributes());
  if (span.error.empty()) return;
  out.mutable_status()->set_code(kError);
  out.mutable_status()->set_message(span.error);
}

}  // namespace

otlp::ExportTraceServiceRequest ToOtlp(const std::vector<Span>& spans, const OtlpOptions& sender) {
  otlp::ExportTraceServiceRequest request;
  otlp::OtlpResourceSpans& resource_spans = *request.add_resource_spans();
  otlp::OtlpResource& resource = *resource_spans.mutable_resource();
  SetText(*resource.add_attributes(), "service.name", sender.service_name);
  SetText(*resource.add_attributes(), "service.version", sender.version);
  SetText(*resource.add_attributes(), "gen_ai.request.model", sender.model);
  otlp::OtlpScopeSpans& scope_spans = *resource_spans.add_scope_spans();
  scope_spans.mutable_scope()->set_name("penstock-router");
  scope_spans.mutable_scope()->set_version(sender.version);
  const Duration difference = ClockDifference();
  for (const Span& span : spans) {
    Convert(span, difference, sender.scheme, *scope_spans.add_spans());
  }
  return request;
}

}  // namespace penstock::router
