#include "router/metrics/tenant_metrics.h"

#include <mutex>
#include <set>
#include <string>

#include "router/metrics/families.h"

namespace penstock::router {

struct TenantMetrics::Families {
  explicit Families(Registry& registry) : registry(registry) {}

  Registry& registry;
  Family<Counter>& tenant_requests =
      Counters(registry, "penstock_tenant_requests_total", "Generation requests, by API key.");
  Family<Counter>& tenant_tokens = Counters(registry, "penstock_tenant_tokens_total",
                                            "Prompt and generated tokens, by API key.");
  std::mutex mutex;
  std::set<std::string, std::less<>> tenants;  // those with a label; under mutex

  // The label of a tenant. Bounded, since API keys may be many and change.
  std::string LabelOf(std::string_view tenant) {
    const std::lock_guard lock(mutex);
    if (tenants.find(tenant) != tenants.end()) return std::string(tenant);
    if (tenants.size() >= kMaxTenants) return "other";
    return *tenants.insert(std::string(tenant)).first;
  }
};

TenantMetrics::TenantMetrics(Registry& registry) : own_(std::make_unique<Families>(registry)) {}
TenantMetrics::~TenantMetrics() = default;

void TenantMetrics::Request(std::string_view tenant) {
  if (tenant.empty()) return;
  own_->tenant_requests.Add({{"tenant", own_->LabelOf(tenant)}}).Increment();
}

void TenantMetrics::Tokens(std::string_view tenant, std::uint64_t prompt, std::uint64_t generated) {
  if (tenant.empty()) return;
  const std::string label = own_->LabelOf(tenant);
  own_->tenant_tokens.Add({{"tenant", label}, {"kind", "prompt"}})
      .Increment(static_cast<double>(prompt));
  own_->tenant_tokens.Add({{"tenant", label}, {"kind", "generated"}})
      .Increment(static_cast<double>(generated));
}

}  // namespace penstock::router
