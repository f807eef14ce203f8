// Converts the router's options to the options of its parts. Pure functions.
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
#include "router/dispatch/embed_queue.h"
#include "router/dispatch/group_fleet.h"
#include "router/engine.h"
#include "router/http/options.h"
#include "router/telemetry/otlp_exporter.h"

namespace penstock::router {

// A warning for each option that is set and has no effect beside the others. The launcher passes
// its options to the router, so only the router warns.
std::vector<std::string> NoEffectWarnings(const options::Values& values);

// Whether --step-log, --record and --audit-log can be written. Nothing is created.
absl::Status CheckLogFiles(const options::Values& values);

// What to say if the KV cache is smaller than the model's context, so that requests are shorter;
// else empty.
std::string ShortContextWarning(const options::Values& values, const GroupFormed& formed);

HttpOptions HttpSettings(const options::Values& values);

// A warning if the limit of open files is too low for all connections; else empty.
std::string OpenFilesWarning(const HttpOptions& http, std::uint64_t open_files);

ApiOptions ApiSettings(const options::Values& values);
DialectOptions DialectSettings(const options::Values& values);

// The groups to form, and whether lost ones are formed again.
// `launched`: a launcher restarts the shards; otherwise the router forms a lost group again itself.
absl::StatusOr<FleetOptions> FleetSettings(const options::Values& values, bool launched);

// What depends on the formed group.
CoreLoopOptions CoreSettings(const options::Values& values, const GroupFormed& formed);

// The queue of a model that gives vectors.
EmbedQueueOptions EmbedSettings(const options::Values& values, const GroupFormed& formed);

// Limits and names for clients. Errors: InvalidArgument, with the numbers, when --max-input-tokens
// or
// --max-total-tokens do not fit the model or its cache.
absl::StatusOr<ModelFacts> FactsOf(const options::Values& values, const GroupFormed& formed);

// Nullopt without an endpoint. Errors: InvalidArgument for an invalid endpoint.
absl::StatusOr<OtlpOptions> OtlpSettings(const options::Values& values, const ModelFacts& facts);

}  // namespace penstock::router
