#include "router/dispatch/request_records.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <variant>

namespace penstock::router {
namespace {

std::optional<RequestId> ParseDecimal(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return RequestId(value);
}

// A client id among those of its tenant. Neither has a line break.
std::string NameIn(const std::string& tenant, const std::string& client_id) {
  return tenant + "\n" + client_id;
}

}  // namespace

void RequestRecords::Add(RequestId request, const std::string& tenant, const std::string& client_id,
                         Time arrived) {
  const std::lock_guard lock(mutex_);
  if (order_.size() >= max_requests_) {
    const auto oldest = records_.find(order_.front());
    const auto named = by_client_id_.find(NameIn(oldest->second.tenant, oldest->second.client_id));
    if (named != by_client_id_.end() && named->second == oldest->first) by_client_id_.erase(named);
    records_.erase(oldest);
    order_.pop_front();
  }
  RequestRecord& record = records_[request];
  record.request = request;
  record.tenant = tenant;
  record.client_id = client_id;
  record.state = "preparing";
  record.arrived = arrived;
  order_.push_back(request);
  if (!client_id.empty()) by_client_id_[NameIn(tenant, client_id)] = request;
}

void RequestRecords::SetPromptTokens(RequestId request, std::uint32_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  if (RequestRecord* record = At(request)) record->prompt_tokens = prompt_tokens;
}

void RequestRecords::SetState(RequestId request, const std::string& state) {
  const std::lock_guard lock(mutex_);
  if (RequestRecord* record = At(request)) record->state = state;
}

void RequestRecords::Take(std::span<const scheduler::Event> events,
                          std::span<const Decision> decisions) {
  const std::lock_guard lock(mutex_);
  for (const Decision& decision : decisions) {
    RequestRecord* record = At(decision.request);
    if (record == nullptr) continue;
    TakeDecision(*record, decision.kind);
    if (record->decisions.size() >= max_decisions_) {
      const auto half = static_cast<std::ptrdiff_t>(max_decisions_ / 2);
      record->decisions.erase(record->decisions.begin() + half);
    }
    record->decisions.push_back(decision);
  }
  for (const scheduler::Event& event : events) TakeEvent(event);
}

void RequestRecords::TakeDecision(RequestRecord& record, DecisionKind kind) {
  if (kind == DecisionKind::kQueued) record.state = "queued";
  if (kind == DecisionKind::kPreempted) ++record.preemptions;
  if (kind == DecisionKind::kLost) ++record.losses;
  // The Started event reports the first admission.
  const bool again = record.preemptions > 0 || record.losses > 0;
  if (kind == DecisionKind::kAdmitted && again) record.state = "running";
}

void RequestRecords::TakeEvent(const scheduler::Event& event) {
  RequestRecord* record = At(event.request);
  if (record == nullptr) return;
  if (const auto* started = std::get_if<scheduler::Started>(&event.what)) {
    record->state = "running";
    record->cached_tokens = started->cached_tokens;
  } else if (const auto* tokens = std::get_if<scheduler::Tokens>(&event.what)) {
    record->generated_tokens += static_cast<std::uint32_t>(tokens->tokens.size());
  } else if (const auto* end = std::get_if<scheduler::Finished>(&event.what)) {
    const bool cancelled = end->reason == FinishReason::kCancelled;
    record->state = cancelled ? "cancelled" : "finished";
    record->generated_tokens = end->generated_tokens;
  } else if (std::holds_alternative<scheduler::Failed>(event.what)) {
    record->state = "failed";
  }
}

absl::StatusOr<RequestRecord> RequestRecords::Find(const std::string& id, const std::string& tenant,
                                                   bool admin) const {
  const std::lock_guard lock(mutex_);
  auto found = records_.end();
  if (const auto named = by_client_id_.find(NameIn(tenant, id)); named != by_client_id_.end()) {
    found = records_.find(named->second);
  } else if (const auto number = ParseDecimal(id)) {
    found = records_.find(*number);
  } else if (admin) {
    const auto named_so = [&](RequestId request) { return records_.at(request).client_id == id; };
    const auto newest = std::find_if(order_.rbegin(), order_.rend(), named_so);
    if (newest != order_.rend()) found = records_.find(*newest);
  }
  if (found == records_.end() || (found->second.tenant != tenant && !admin)) {
    return absl::NotFoundError("request `" + id + "` is not among the newest " +
                               std::to_string(max_requests_));
  }
  return found->second;
}

void RequestRecords::HideOthers(RequestRecord& record) const {
  const std::lock_guard lock(mutex_);
  const auto hidden = [&](RequestId id) {
    const auto found = records_.find(id);
    if (found == records_.end()) return !record.tenant.empty();
    return found->second.tenant != record.tenant;
  };
  const auto hide = [&](std::optional<RequestId>& id) {
    if (id && hidden(*id)) id.reset();
  };
  for (Decision& decision : record.decisions) hide(decision.behind);
  if (!record.ledger) return;
  if (record.ledger->behind && hidden(*record.ledger->behind)) record.ledger->behind_other = true;
  hide(record.ledger->behind);
  for (LedgerSpan& span : record.ledger->spans) {
    span.behind_other = span.behind && hidden(*span.behind);
    hide(span.behind);
    span.beside_left_out += static_cast<std::uint32_t>(std::erase_if(span.beside, hidden));
  }
}

std::optional<RequestRecord> RequestRecords::Of(RequestId request) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(request);
  if (found == records_.end()) return std::nullopt;
  return found->second;
}

RequestRecord* RequestRecords::At(RequestId request) {
  const auto found = records_.find(request);
  return found == records_.end() ? nullptr : &found->second;
}

}  // namespace penstock::router
