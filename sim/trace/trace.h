// A workload without text: when requests arrive, how long they are, and which prompt blocks they
// share. MakePrompt makes prompts of it.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace penstock::sim {

struct TraceRequest {
  Duration arrival{0};  // since the start of the trace; requests are in order of arrival
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  // One id for each block of the prompt; the last block may be partial. Equal ids mean equal tokens
  // in the block and in all blocks before it. Empty: the prompt shares nothing.
  std::vector<std::uint32_t> blocks;
};

struct Trace {
  std::vector<TraceRequest> requests;
  std::uint32_t block_tokens = 512;  // tokens per entry of TraceRequest::blocks
};

// Limits of every reader and generator, far above the public traces.
inline constexpr std::uint64_t kMaxTraceRequests = 2'000'000;
inline constexpr std::uint32_t kMaxTraceTokens = 1'048'576;  // of a prompt or an output

// The prompt of request number `index`. A block id gives the same tokens in every prompt, and a
// request without blocks has tokens of its own. Token ids are in [0, 2^31).
std::vector<TokenId> MakePrompt(const Trace& trace, std::size_t index);

}  // namespace penstock::sim
