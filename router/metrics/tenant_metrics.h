// Requests and tokens of named API keys. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "router/metrics/families.h"

namespace penstock::router {

class TenantMetrics {
 public:
  explicit TenantMetrics(Registry& registry) : make_(registry) {}

  // Beyond this many names all others are counted as "other".
  static constexpr std::size_t kMaxTenants = 100;
  void Request(std::string_view tenant) {
    if (!tenant.empty()) requests_.Add({{"tenant", LabelOf(tenant)}}).Increment();
  }
  // Above the limits of its key.
  void Refused(std::string_view tenant) {
    if (!tenant.empty()) refused_.Add({{"tenant", LabelOf(tenant)}}).Increment();
  }
  void Tokens(std::string_view tenant, std::uint64_t prompt, std::uint64_t generated) {
    if (tenant.empty()) return;
    const std::string label = LabelOf(tenant);
    Add(tokens_.Add({{"tenant", label}, {"kind", "prompt"}}), prompt);
    Add(tokens_.Add({{"tenant", label}, {"kind", "generated"}}), generated);
  }

 private:
  // Bounded, since API keys may be many and change.
  std::string LabelOf(std::string_view tenant) {
    const std::lock_guard lock(mutex_);
    if (tenants_.find(tenant) != tenants_.end()) return std::string(tenant);
    if (tenants_.size() >= kMaxTenants) return "other";
    return *tenants_.insert(std::string(tenant)).first;
  }

  Families make_;
  Family<Counter>& requests_ = make_.Counters("penstock_tenant_requests_total",
                                              "Generation requests, by API key.", "tenant");
  Family<Counter>& tokens_ = make_.Counters(
      "penstock_tenant_tokens_total", "Prompt and generated tokens, by API key.", "kind tenant");
  Family<Counter>& refused_ =
      make_.Counters("penstock_tenant_refused_total",
                     "Requests above the limits of their API key, by key.", "tenant");
  std::mutex mutex_;
  std::set<std::string, std::less<>> tenants_;  // those with a label; under mutex_
};

}  // namespace penstock::router
