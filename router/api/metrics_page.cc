#include "router/api/metrics_page.h"

#include <algorithm>

namespace penstock::router {

std::string WithoutTenants(std::string_view page, std::optional<std::string_view> but) {
  constexpr std::string_view kSeries = "penstock_tenant_";
  const std::string own = but ? "tenant=\"" + std::string(*but) + "\"" : "";
  std::string shown;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size() - 1) + 1;
    const std::string_view line = page.substr(0, end);
    page.remove_prefix(end);
    const bool is_own = but && line.find(own) != line.npos;
    if (!line.starts_with(kSeries) || is_own) shown += line;
  }
  return shown;
}

std::string MetricsPageFor(const ApiContext& context, const RequestHead& head) {
  std::string page = context.metrics.Render();
  const auto keys = context.options.keys == nullptr ? nullptr : context.options.keys->Get();
  if (keys == nullptr || !keys->has_tenants()) return page;
  const auto key = context.dialects.fallback().KeyIn(head);
  const auto tenant = key ? keys->NameOf(*key) : std::nullopt;
  if (tenant && context.options.IsAdmin(*tenant)) return page;
  return WithoutTenants(page, tenant);
}

}  // namespace penstock::router
