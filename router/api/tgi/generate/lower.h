// TGI's parameters as generation requests: its checks, in its order, with its texts.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "router/api/context.h"
#include "router/api/tgi/generate/request.h"

namespace penstock::router::tgi {

enum class Mode { kPlain, kStream };

// TGI makes these checks before it takes a permit, so an overloaded server reports them too.
std::optional<ApiError> CheckBeforePermit(const ApiOptions& options, const Request& request,
                                          Mode mode);

// All other checks that need no tokenizer, then the request; one per candidate (best_of).
std::variant<std::vector<GenerationRequest>, ApiError> Lower(const ApiContext& context,
                                                             const Request& request, Mode mode,
                                                             const std::string& client_id);

// Candidates of a request: best_of 0 counts as 1, as in TGI.
std::uint32_t Candidates(const Request& request);

}  // namespace penstock::router::tgi
