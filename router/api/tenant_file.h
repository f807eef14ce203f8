// The file of tenants that --api-keys-file may name: YAML, with the keys, weights and limits of
// each tenant.
//
//   tenants:
//     research:
//       key: sk-1                 # or keys: [sk-1, sk-2]
//       weight: 2                 # 1 to 1000 (1)
//       max_requests: 32          # at once (no limit)
//       tokens_per_minute: 60000  # prompts and outputs (no limit)
//       queue_share: 0.25         # of --max-concurrent-requests (0.5; 1 if there is one tenant)
//       max_priority: 5           # of X-Penstock-Priority (no limit)
//   prefix_cache: tenant          # or shared
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "router/api/keys.h"

namespace penstock::router {

// Whether a file of keys has this form: a line of it is `tenants:`. In the other form each line has
// a key after its colon.
bool IsTenantFile(std::string_view text);

// `single`: a key named "default", a tenant without limits; empty: none. Errors name the line of
// `where`, the tenant, the key and its limits, and never an API key.
absl::StatusOr<ApiKeys> ParseTenants(std::string_view single, const std::string& text,
                                     const std::string& where);

}  // namespace penstock::router
