// Reads public request traces. The first line of a file tells its format:
//
//   {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}
//       Mooncake, one JSON object a line.
//   TIMESTAMP,ContextTokens,GeneratedTokens
//       Azure's CSV, with times in units of 100 ns. In ShareGPT's file the times are letters.
//   num_prefill_tokens,num_decode_tokens,...
//       A CSV of lengths without times.
//
// In a file without times all requests arrive at 0; see ArriveAtRate. The first bad row is an
// error: one line that names file, line, field and limit.
#pragma once

#include <absl/status/statusor.h>

#include <istream>
#include <string>

#include "sim/trace/trace.h"

namespace penstock::sim {

absl::StatusOr<Trace> ReadTrace(const std::string& path);

// Reads from a stream. Error messages name it `name`.
absl::StatusOr<Trace> ReadTrace(std::istream& in, const std::string& name);

}  // namespace penstock::sim
