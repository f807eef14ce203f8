// The last checks of a generation request at its entry, the same for all dialects: the limits of
// its tenant, its cost and its predicted wait.
#pragma once

#include <optional>
#include <vector>

#include "router/api/context.h"
#include "router/api/errors.h"
#include "router/api/hints.h"
#include "router/api/permits.h"
#include "router/engine.h"

namespace penstock::router {

// Gives the candidates their hints and what the file of tenants says about the tenant. `permit` is
// that of --max-concurrent-requests for all of them; it then also counts for the tenant. Or why the
// request is refused.
std::optional<ApiError> Enter(ApiContext& context, const Hints& hints,
                              std::vector<GenerationRequest>& candidates, Permit& permit);

// The same for a request that generates nothing: the limits of the tenant alone.
std::optional<ApiError> EnterTenant(ApiContext& context, const std::string& tenant, Permit& permit);

}  // namespace penstock::router
