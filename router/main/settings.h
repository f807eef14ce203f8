// The router's options as its parts want them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/status/statusor.h>

#include "common/options/values.h"
#include "router/api/context.h"
#include "router/dispatch/core_loop.h"
#include "router/dispatch/group_fleet.h"
#include "router/engine.h"
#include "router/http/options.h"
#include "router/telemetry/otlp_exporter.h"

namespace penstock::router {

// A line for each option that is set and, beside the others, changes nothing. A launcher gives its
// router what it was given, so these are said here only.
std::vector<std::string> NoEffectWarnings(const options::Values& values);

HttpOptions HttpSettings(const options::Values& values);
ApiOptions ApiSettings(const options::Values& values);
DialectOptions DialectSettings(const options::Values& values);

// The groups to form and what happens when one is lost.
absl::StatusOr<FleetOptions> FleetSettings(const options::Values& values);

// Whether the shards announce it.
bool HasCapability(const GroupFormed& formed, std::string_view name);

// What can be decided once the group is formed.
CoreLoopOptions CoreSettings(const options::Values& values, const GroupFormed& formed);

// Limits and names for clients. InvalidArgument when --max-input-tokens or --max-total-tokens do
// not fit the model or its cache, with the numbers.
absl::StatusOr<ModelFacts> FactsOf(const options::Values& values, const GroupFormed& formed);

// Without an endpoint: no traces. InvalidArgument when it is not one.
absl::StatusOr<OtlpOptions> OtlpSettings(const options::Values& values, const ModelFacts& facts);

}  // namespace penstock::router
