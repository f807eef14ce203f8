// The page of GET /metrics for one caller. The route is open, so that monitoring needs no key. With
// a file of tenants it shows the series of a tenant only to that tenant's key and to the key of
// --admin-key-name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "router/api/context.h"
#include "router/http/message.h"

namespace penstock::router {

std::string MetricsPageFor(const ApiContext& context, const RequestHead& head);

// Without the series of all tenants, or of all but one.
std::string WithoutTenants(std::string_view page, std::optional<std::string_view> but);

}  // namespace penstock::router
