#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "router/api/errors.h"
#include "router/api/native/dialect.h"
#include "router/http/text.h"
#include "router/json/writer.h"

namespace penstock::router::native {
namespace {

void AppendShortage(std::string& out, const Decision& decision) {
  json::AppendMembers(out, "short_of", BudgetName(decision.short_of), "needed", decision.needed,
                      "available", decision.available);
}

// The last decision says how the request ended.
std::string_view NameOfDecision(const Decision& decision, const RequestRecord& record) {
  const bool early = record.state == "cancelled" || record.state == "failed";
  return early && decision.kind == DecisionKind::kFinished ? std::string_view(record.state)
                                                           : DecisionName(decision.kind);
}

void AppendDecision(std::string& out, const Decision& decision, const RequestRecord& record) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  out += '{';
  json::AppendMembers(out, "after_ms", Milliseconds(decision.at - record.arrived).count(),
                      "decision", NameOfDecision(decision, record));
  if (decision.kind == DecisionKind::kSplit) {
    json::AppendMembers(out, "parts", decision.needed, "part", decision.available);
  }
  if (decision.short_of != Budget::kNone) AppendShortage(out, decision);
  if (decision.behind) json::AppendMembers(out, "behind", decision.behind->value());
  if (decision.step) json::AppendMembers(out, "step", decision.step->value());
  out += '}';
}

// What a queued request waits for, from its newest decision.
void AppendBlocked(std::string& out, const RequestRecord& record) {
  if (record.decisions.empty() || record.decisions.back().kind != DecisionKind::kDeferred) return;
  if (record.state != "queued") return;
  const Decision& newest = record.decisions.back();
  out += ",\"waits_for\":{";
  AppendShortage(out, newest);
  if (newest.behind) json::AppendMembers(out, "behind", newest.behind->value());
  out += '}';
}

std::string_view NameOfDecision(PrefixReason::Kind kind) {
  // In the order of Kind.
  constexpr std::string_view kNames[] = {"short",   "computed_whole", "no_relative", "different",
                                         "evicted", "held",           "other_tenant"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Why it read less from the prefix cache than it might. The tenant of the relative is an admin's to
// see.
void AppendPrefixMiss(std::string& out, const RequestRecord& record, bool admin) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  if (!record.prefix_miss) return;
  const PrefixReason& miss = *record.prefix_miss;
  out += ",\"prefix_miss\":{";
  json::AppendMembers(out, "why", NameOfDecision(miss.kind));
  if (miss.relative) {
    json::AppendMembers(out, "relative", miss.relative->value(), "relative_client_id",
                        miss.relative_client_id, "common_tokens", miss.common_tokens);
    if (admin) json::AppendMembers(out, "relative_tenant", miss.relative_tenant);
  }
  if (!miss.here.empty() || !miss.there.empty()) {
    json::AppendMembers(out, "before", miss.before, "here", miss.here, "there", miss.there);
  }
  if (miss.last_cached) {
    json::AppendMembers(out, "last_cached_ms",
                        Milliseconds(*miss.last_cached - record.arrived).count(), "missed_ms",
                        Milliseconds(miss.missed - record.arrived).count());
  }
  out += '}';
}

// The ids of answers of OpenAI's and Anthropic's routes are a prefix, the request's id, `-` and a
// number.
std::optional<std::string> RequestOfAnswer(std::string_view id) {
  for (const std::string_view prefix : {"chatcmpl-", "cmpl-", "resp_", "msg_"}) {
    if (!id.starts_with(prefix)) continue;
    id.remove_prefix(prefix.size());
    return std::string(id.substr(0, id.rfind('-')));
  }
  return std::nullopt;
}

}  // namespace

void Request(ApiContext& context, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  constexpr std::string_view kPrefix = "/requests/";
  const std::string id = PercentDecoded(std::string_view(request.head.path).substr(kPrefix.size()));
  const std::string& tenant = request.head.tenant;
  const bool admin = context.options.IsAdmin(tenant);
  const auto record = context.engine.Explain(RequestOfAnswer(id).value_or(id), tenant, admin);
  if (!record.ok()) {
    exchange->Respond(context.dialects.fallback().Errors().Response(
        {ApiErrorKind::kNotFound, "no record of request " + id, "id"}));
    return;
  }
  std::string body = "{";
  json::AppendMembers(body, "request", record->request.value(), "client_id", record->client_id,
                      "state", record->state, "prompt_tokens", record->prompt_tokens,
                      "generated_tokens", record->generated_tokens, "cached_tokens",
                      record->cached_tokens, "preemptions", record->preemptions, "losses",
                      record->losses);
  AppendBlocked(body, *record);
  AppendPrefixMiss(body, *record, admin);
  if (record->ledger) AppendLedger(body, *record->ledger);
  const auto append = [&](std::string& out, const Decision& decision) {
    AppendDecision(out, decision, *record);
  };
  json::AppendMembers(body, "decisions", json::Array(record->decisions, append));
  body += '}';
  exchange->Respond(JsonResponse(std::move(body)));
}

}  // namespace penstock::router::native
