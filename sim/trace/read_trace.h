// Readers of the public request traces. Three formats, told apart by their first line:
//
//   Mooncake JSONL   {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}
//   Azure CSV        TIMESTAMP,ContextTokens,GeneratedTokens      (100 ns stamps; CR LF; the
//                    ShareGPT lengths have the same columns and letters for a stamp)
//   lengths CSV      num_prefill_tokens,num_decode_tokens,...     (no stamps)
//
// A file without stamps gives requests that all arrive at 0: use ArriveAtRate. Rows are never
// dropped: the first bad one ends the reading with one line that names file, line, field and limit.
#pragma once

#include <absl/status/statusor.h>

#include <istream>
#include <string>

#include "sim/trace/trace.h"

namespace penstock::sim {

absl::StatusOr<Trace> ReadTrace(const std::string& path);

// The same from a stream; `name` stands in the messages.
absl::StatusOr<Trace> ReadTrace(std::istream& in, const std::string& name);

}  // namespace penstock::sim
