// A request of generate.v3, tokenized, truncated and checked for the engine.
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

// Limits of the loaded model.
struct RequestLimits {
  std::uint32_t vocabulary = 0;
  std::uint32_t max_sequence_length = 0;  // prompt and new tokens together
  bool grammar = false;                   // the engine supports grammars
  bool watermark = false;
};

struct TgiRequest {
  std::uint64_t id = 0;
  SequenceStart start;             // slot and sequence are set later
  std::vector<std::string> stops;  // stop strings
  std::uint32_t first_chunk = 0;   // prompt tokens that the first step computes
  bool health = false;             // the health check of the router, which may use block 0
};

// Zero means "not set" for temperature, top_p, typical_p and repetition_penalty. Blocks, slots and
// the cached length from TGI's router are ignored, because the shard allocates itself. As in TGI's
// shard, `adapter_id` falls back to the base model.
//
// INVALID_ARGUMENT names the field, the value and the limit. UNIMPLEMENTED names what the engine
// does not support.
absl::StatusOr<TgiRequest> ReadRequest(const generate::v3::Request& wire,
                                       const text::Tokenizer& tokenizer,
                                       const RequestLimits& limits);

}  // namespace penstock::shard
