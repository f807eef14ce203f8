// DJL's parameters as generation requests, one per input.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "router/api/context.h"
#include "router/api/djl/request.h"

namespace penstock::router::djl {

// How an answer is written.
enum class Formatter { kJson, kJsonLines, kSse };

std::variant<Formatter, ApiError> FormatterOf(const DjlOptions& options, const Request& request);

std::variant<std::vector<GenerationRequest>, ApiError> Lower(const ApiContext& context,
                                                             const DjlOptions& options,
                                                             const Request& request,
                                                             const std::string& client_id);

}  // namespace penstock::router::djl
