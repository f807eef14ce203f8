// --memory-plan: what a rank of a model needs, without reading its weights.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/options/values.h"

namespace penstock::shard {

// One line of JSON. The sizes are in bytes, of this rank:
//   model_type, dtype, backend, parameters (of the whole model), max_position, weights, scratch,
//   kv_per_token, window, window_kv_per_sequence, state_per_sequence, free, limit (what bounds
//   `free`), and problem: why the plan does not fit, else empty
// An error says why no rank could start.
absl::StatusOr<std::string> MemoryReport(const options::Values& values);

// Prints the report, or the error to standard error. Returns the exit code (common/exit_codes.h).
int PrintMemoryReport(const options::Values& values);

}  // namespace penstock::shard
