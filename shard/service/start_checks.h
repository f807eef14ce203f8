// Checks of a SequenceStart that do not depend on the state of the shard.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "shard/cache/paged/kv_blocks.h"

namespace penstock::shard {

// The limits of a group's plans, agreed at Commit.
struct PlanBounds {
  Epoch epoch;
  std::uint32_t vocabulary = 0;
  std::uint32_t slots = 0;
  KvBlocks blocks;
  std::uint32_t block_size = 16;
  std::uint32_t cells = 0;      // 0: paged KV layout
  std::uint32_t snapshots = 0;  // of recurrent states; above 0: a cached start needs one
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_sequence_length = 0;
  std::uint32_t max_decode_rows = 1;
  std::uint32_t max_candidates = 0;  // of contrastive search; 0: not offered
  bool grammars = false;             // a start may have one
  bool watermarks = false;           // a start may request one
  std::uint32_t kv_groups = 1;       // with a block table of their own
  std::uint32_t window = 0;          // of KV group 1
  bool adapters = false;             // a start may have one; the engine knows which there are
  bool prefixes = true;              // a start may begin after cached positions, without a snapshot
};

// All give INVALID_ARGUMENT with the field, the value and the limit.
absl::Status Bad(const char* field, std::uint64_t value, const std::string& limit);
absl::Status CheckSampling(const SamplingParams& params, std::uint32_t vocabulary,
                           std::uint32_t max_candidates);
absl::Status CheckTokens(const std::vector<TokenId>& tokens, std::uint32_t vocabulary,
                         const char* field);
absl::Status CheckStart(const SequenceStart& start, const PlanBounds& bounds);

}  // namespace penstock::shard
