#include <string>
#include <string_view>
#include <utility>

#include "router/api/errors.h"
#include "router/api/native/dialect.h"
#include "router/json/writer.h"

namespace penstock::router::native {
namespace {

void AppendDecision(std::string& out, const Decision& decision, Time arrived) {
  const double milliseconds =
      std::chrono::duration<double, std::milli>(decision.at - arrived).count();
  out += "{\"after_ms\":";
  json::AppendDouble(out, milliseconds);
  out += ",\"decision\":";
  json::AppendString(out, DecisionName(decision.kind));
  if (decision.kind == DecisionKind::kSplit) {
    out += ",\"parts\":";
    json::AppendInteger(out, decision.needed);
    out += ",\"part\":";
    json::AppendInteger(out, decision.available);
  }
  if (decision.short_of != Budget::kNone) {
    out += ",\"short_of\":";
    json::AppendString(out, BudgetName(decision.short_of));
    out += ",\"needed\":";
    json::AppendInteger(out, decision.needed);
    out += ",\"available\":";
    json::AppendInteger(out, decision.available);
  }
  if (decision.behind) {
    out += ",\"behind\":";
    json::AppendInteger(out, decision.behind->value());
  }
  if (decision.step) {
    out += ",\"step\":";
    json::AppendInteger(out, decision.step->value());
  }
  out += '}';
}

// What a queued request waits for, from its newest decision.
void AppendBlocked(std::string& out, const RequestRecord& record) {
  if (record.decisions.empty() || record.decisions.back().kind != DecisionKind::kDeferred) return;
  if (record.state != "queued") return;
  const Decision& newest = record.decisions.back();
  out += ",\"waits_for\":{\"short_of\":";
  json::AppendString(out, BudgetName(newest.short_of));
  out += ",\"needed\":";
  json::AppendInteger(out, newest.needed);
  out += ",\"available\":";
  json::AppendInteger(out, newest.available);
  if (newest.behind) {
    out += ",\"behind\":";
    json::AppendInteger(out, newest.behind->value());
  }
  out += '}';
}

// The ids of OpenAI's answers are a prefix and the request's id.
std::string_view WithoutPrefix(std::string_view id) {
  for (const std::string_view prefix : {"chatcmpl-", "cmpl-"}) {
    if (id.starts_with(prefix)) return id.substr(prefix.size());
  }
  return id;
}

}  // namespace

void Request(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/requests/";
  const std::string id(WithoutPrefix(std::string_view(request.head.path).substr(kPrefix.size())));
  const auto record = context.engine.Explain(id, request.head.tenant);
  if (!record.ok()) {
    exchange->Respond(context.dialects.fallback().Errors().Response(
        {ApiErrorKind::kNotFound, "no record of request " + id, "id"}));
    return;
  }
  std::string body = "{\"request\":";
  json::AppendInteger(body, record->request.value());
  body += ",\"client_id\":";
  json::AppendString(body, record->client_id);
  body += ",\"state\":";
  json::AppendString(body, record->state);
  body += ",\"prompt_tokens\":";
  json::AppendInteger(body, record->prompt_tokens);
  body += ",\"generated_tokens\":";
  json::AppendInteger(body, record->generated_tokens);
  body += ",\"cached_tokens\":";
  json::AppendInteger(body, record->cached_tokens);
  body += ",\"preemptions\":";
  json::AppendInteger(body, record->preemptions);
  AppendBlocked(body, *record);
  body += ",\"decisions\":[";
  for (std::size_t i = 0; i < record->decisions.size(); ++i) {
    if (i > 0) body += ',';
    AppendDecision(body, record->decisions[i], record->arrived);
  }
  body += "]}";
  exchange->Respond({200, "application/json", {}, std::move(body)});
}

}  // namespace penstock::router::native
