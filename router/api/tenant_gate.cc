#include "router/api/tenant_gate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace penstock::router {
namespace {

constexpr double kMinute = 60;
constexpr int kMaxRetrySeconds = 3600;

ApiError OverLimit(const std::string& tenant, const std::string& what, int retry_after = 0) {
  ApiError error{ApiErrorKind::kOverloaded, "the API key `" + tenant + "` " + what, ""};
  error.retry_after = retry_after;
  return error;
}

std::string Generations(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " generation" : " generations");
}

std::string ShareText(double share) {
  std::string text = std::to_string(share);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

// A new limit begins with a full bucket.
void TenantGate::Fill(Entry& entry, std::uint64_t tokens_per_minute, Time now) {
  const auto full = static_cast<double>(tokens_per_minute);
  if (entry.tokens_per_minute != tokens_per_minute) {
    entry.tokens_per_minute = tokens_per_minute;
    entry.level = full;
  } else {
    const double seconds = std::chrono::duration<double>(now - entry.filled).count();
    entry.level = std::min(full, entry.level + full * std::max(0.0, seconds) / kMinute);
  }
  entry.filled = now;
}

std::optional<ApiError> TenantGate::Enter(const std::string& tenant, const TenantLimits& limits,
                                          std::uint32_t generations, Time now, Permit& permit) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[tenant];
  entry.weight = limits.weight;
  Fill(entry, limits.tokens_per_minute, now);
  const std::uint64_t open = std::uint64_t{entry.open->load()} + generations;
  if (limits.max_requests > 0 && open > limits.max_requests) {
    return OverLimit(tenant, "may have at most " + Generations(limits.max_requests) +
                                 " at once (`max_requests`). With this request it has " +
                                 std::to_string(open));
  }
  const auto share = std::max(1.0, std::floor(limits.queue_share * most_));
  if (static_cast<double>(open) > share) {
    return OverLimit(tenant, "may have at most " + Generations(static_cast<std::uint64_t>(share)) +
                                 " at once: its `queue_share` is " + ShareText(limits.queue_share) +
                                 " of --max-concurrent-requests " + std::to_string(most_) +
                                 ". With this request it has " + std::to_string(open));
  }
  if (limits.tokens_per_minute > 0 && entry.level <= 0) {
    const double seconds =
        (1 - entry.level) * kMinute / static_cast<double>(entry.tokens_per_minute);
    const int wait = static_cast<int>(std::clamp(std::ceil(seconds), 1.0, 1.0 * kMaxRetrySeconds));
    return OverLimit(tenant,
                     "may use at most " + std::to_string(limits.tokens_per_minute) +
                         " tokens a minute (`tokens_per_minute`). It may send requests again in " +
                         std::to_string(wait) + " s",
                     wait);
  }
  entry.open->fetch_add(generations);
  permit.CountIn(entry.open);
  return std::nullopt;
}

void TenantGate::Spend(const std::string& tenant, std::uint64_t tokens, Time now) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(tenant);
  if (found == entries_.end() || found->second.tokens_per_minute == 0) return;
  Fill(found->second, found->second.tokens_per_minute, now);
  found->second.level -= static_cast<double>(tokens);
}

TenantGate::Waits TenantGate::WaitsOf(const std::string& tenant, const TenantLimits& limits,
                                      std::uint32_t more, std::uint64_t running) const {
  const std::lock_guard lock(mutex_);
  double weights = limits.weight;
  double open = more;
  for (const auto& [name, entry] : entries_) {
    const std::uint32_t its = entry.open->load();
    if (name == tenant) {
      open += its;
    } else if (its > 0) {
      weights += entry.weight;
    }
  }
  Waits waits;
  waits.part = std::max(1.0, static_cast<double>(running) * limits.weight / weights);
  waits.waiting = std::max(0.0, open - waits.part);
  return waits;
}

}  // namespace penstock::router
