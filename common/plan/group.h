// What a formed group offers the scheduler: sizes agreed at Commit and measured step times.
#pragma once

#include <cstdint>
#include <vector>

#include "common/time.h"

namespace penstock {

// How K and V of a text depend on its length, with RoPE whose frequencies do.
enum class LengthRule : std::uint8_t {
  kNone,
  // longrope: a text that is longer than the original length has other K and V from its first token
  // on. A sequence that passes the length is computed again.
  kRecompute,
  // dynamic: a prompt that is longer than the original length has K and V of its own length.
  kPromptLength,
};

struct GroupCapacity {
  std::uint32_t blocks = 0;               // of KV group 0, the minimum over the ranks
  std::uint32_t block_size = 16;          // tokens per block
  std::uint32_t slots = 0;                // sequences that the shards hold at once
  std::uint32_t max_sequence_length = 0;  // prompt + output tokens, bounded by the model's context
  std::uint32_t max_step_tokens = 0;      // what the shards warmed up for
  bool padded_attention =
      false;  // attention costs as much as the padded positions; decode batches are split
  // KV group 1: the layers whose rows read the last `window` positions, their own included. Its
  // blocks are a separate pool, the minimum over the ranks. 0 = all layers are in group 0.
  std::uint32_t window = 0;
  std::uint32_t window_blocks = 0;
  bool shares_blocks = true;         // several sequences may read one block
  std::uint32_t max_candidates = 0;  // of contrastive search; 0 = not offered
  // Padded KV layout: the most positions that all rows of dense sub-batches may hold, the minimum
  // over the ranks. `blocks` then hold prompts and the prefix cache. 0 = paged layout.
  std::uint32_t cells = 0;
  LengthRule length_rule = LengthRule::kNone;
  std::uint32_t original_length = 0;  // tokens, with a length rule
  // Snapshots of recurrent states, the minimum over the ranks. If above 0, the model has recurrent
  // layers, and a sequence that begins with cached blocks needs the snapshot at their end.
  std::uint32_t snapshots = 0;
  // Forced tokens that a decode of a sequence with a grammar may append besides its own; 0 = none.
  std::uint32_t forced_tokens = 0;
  friend bool operator==(const GroupCapacity&, const GroupCapacity&) = default;
};

// Measured by Warmup. An input of the scheduler core, so that a replay has the same times.
struct StepTimeSample {
  std::uint32_t prefill_tokens = 0;
  std::uint32_t decode_rows = 0;
  std::uint32_t context_tokens = 0;  // per decode row
  Duration time{0};
  friend bool operator==(const StepTimeSample&, const StepTimeSample&) = default;
};

struct Calibration {
  std::vector<StepTimeSample> samples;
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

}  // namespace penstock
