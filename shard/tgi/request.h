// A request of generate.v3 as the engine wants it: tokenized, cut, checked.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/plan/step_plan.h"
#include "text/tokenizer.h"

namespace generate::v3 {
class Request;
}  // namespace generate::v3

namespace penstock::shard {

// What the loaded model allows.
struct RequestLimits {
  std::uint32_t vocabulary = 0;
  std::uint32_t max_sequence_length = 0;  // prompt and new tokens together
  bool grammar = false;                   // the engine keeps to grammars
  bool watermark = false;
};

struct TgiRequest {
  std::uint64_t id = 0;
  SequenceStart start;             // slot and sequence are given later
  std::vector<std::string> stops;  // stop strings
  std::uint32_t first_chunk = 0;   // prompt tokens that the first step computes
  bool health = false;             // the router's health check: it may use block 0
};

// Zero means "not set" where TGI's router would send the neutral value: a client that leaves
// temperature, top_p, typical_p or repetition_penalty alone gets plain greedy search. Blocks, slots
// and the cached length that TGI's router assigned are not used: the shard allocates by itself.
// `adapter_id` falls back to the base model, as TGI's shard does.
//
// INVALID_ARGUMENT names field, value and limit; UNIMPLEMENTED names what the engine cannot do.
absl::StatusOr<TgiRequest> ReadRequest(const generate::v3::Request& wire,
                                       const text::Tokenizer& tokenizer,
                                       const RequestLimits& limits);

}  // namespace penstock::shard
