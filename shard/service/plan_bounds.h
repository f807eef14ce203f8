// The limits of a group's plans.
#pragma once

#include <cstdint>

#include "common/ids.h"

namespace penstock::shard {

// Agreed at Commit.
struct PlanBounds {
  Epoch epoch;
  std::uint32_t vocabulary = 0;
  std::uint32_t slots = 0;
  std::uint32_t blocks = 0;
  std::uint32_t block_size = 16;
  std::uint32_t cells = 0;  // 0: paged KV layout
  std::uint32_t max_step_tokens = 0;
  std::uint32_t max_sequence_length = 0;
  std::uint32_t max_decode_rows = 1;
  std::uint32_t max_candidates = 0;  // of contrastive search; 0: not offered
  bool grammars = false;             // a start may have one
  bool watermarks = false;           // a start may request one
  std::uint32_t kv_groups = 1;
};

}  // namespace penstock::shard
