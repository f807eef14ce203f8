// The requests of a replay: a trace, or lengths that are drawn.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/options/values.h"
#include "sim/trace/trace.h"

namespace penstock::replay {

// `source`: a trace file, or the word uniform: `rows` requests. Reads the options --requests,
// --prompt-tokens, --output-tokens and --seed.
absl::StatusOr<sim::Trace> ReadWorkload(const std::string& source, int rows,
                                        const options::Values& values);

}  // namespace penstock::replay
