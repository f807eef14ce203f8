#include <string>
#include <string_view>
#include <utility>

#include "router/api/errors.h"
#include "router/api/json/writer.h"
#include "router/api/native/handlers.h"

namespace penstock::router::native {
namespace {

using scheduler::Budget;
using scheduler::Decision;
using scheduler::DecisionKind;

std::string_view KindName(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::kQueued:
      return "queued";
    case DecisionKind::kAdmitted:
      return "admitted";
    case DecisionKind::kDeferred:
      return "deferred";
    case DecisionKind::kChunked:
      return "chunked";
    case DecisionKind::kSplit:
      return "split";
    case DecisionKind::kPreempted:
      return "preempted";
    case DecisionKind::kRefused:
      return "refused";
    case DecisionKind::kRetired:
      return "retired";
    case DecisionKind::kFinished:
      break;
  }
  return "finished";
}

std::string_view BudgetName(Budget budget) {
  switch (budget) {
    case Budget::kNone:
      return "none";
    case Budget::kStepTokens:
      return "step_tokens";
    case Budget::kPrefillTokens:
      return "prefill_tokens";
    case Budget::kTotalTokens:
      return "total_tokens";
    case Budget::kBlocks:
      return "blocks";
    case Budget::kSlots:
      return "slots";
    case Budget::kBatchSize:
      return "batch_size";
    case Budget::kQueue:
      return "queue";
    case Budget::kOrder:
      return "order";
    case Budget::kStepTime:
      return "step_time";
    case Budget::kGroup:
      return "group";
    case Budget::kPrefix:
      break;
  }
  return "prefix";
}

void AppendDecision(std::string& out, const Decision& decision, Time arrived) {
  const double milliseconds =
      std::chrono::duration<double, std::milli>(decision.at - arrived).count();
  out += "{\"after_ms\":";
  json::AppendDouble(out, milliseconds);
  out += ",\"decision\":";
  json::AppendString(out, KindName(decision.kind));
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

// OpenAI's ids carry ours behind a prefix.
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
  const auto record = context.engine.Explain(id);
  if (!record.ok()) {
    exchange->Respond(ErrorResponse(Dialect::kNative,
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
  body += ",\"decisions\":[";
  for (std::size_t i = 0; i < record->decisions.size(); ++i) {
    if (i > 0) body += ',';
    AppendDecision(body, record->decisions[i], record->arrived);
  }
  body += "]}";
  exchange->Respond({200, "application/json", {}, std::move(body)});
}

}  // namespace penstock::router::native
