// What a rank answers to one StepPlan. Rank 0 carries tokens; the others carry only the digest.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace penstock {

// Why the shard ended a sequence. kLength only when SequenceStart::max_new_tokens was given.
enum class ShardFinish : std::uint8_t { kNone, kEos, kLength, kStopToken, kError };

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;
  friend bool operator==(const TokenLogprob&, const TokenLogprob&) = default;
};

struct SampledToken {
  TokenId token = 0;
  float logprob = 0.0f;  // meaningful when logprobs were asked for
  std::vector<TokenLogprob> alternatives;
  friend bool operator==(const SampledToken&, const SampledToken&) = default;
};

// Most steps give a sequence one token, which then lies in the list itself.
using SampledTokens = absl::InlinedVector<SampledToken, 1>;

struct SequenceResult {
  SlotId slot;
  SequenceId sequence;
  // 0 … max_rows, in order of position. None under a grammar whose mask was not ready: a later
  // decode gives the token, and computes no row in doing so.
  SampledTokens tokens;
  std::uint32_t committed_length = 0;
  ShardFinish finish = ShardFinish::kNone;  // an EOS or stop token is the last of `tokens`
  // kError: one line for the client. Only a segment that samples can fail, so the prompt has been
  // computed, and others may go on reading its blocks.
  std::string error;
  // For prompt segments with Logits::kAll: logprob of prompt token first+i+1 given its prefix, for
  // i < count, or i < count-1 in the chunk that reaches the prompt's end (the row that is left
  // samples). All chunks of a prompt of P tokens together give P-1.
  std::vector<float> prompt_logprobs;
  friend bool operator==(const SequenceResult&, const SequenceResult&) = default;
};

struct StepTimings {
  Duration queued{0};   // plan received -> model thread took it
  Duration forward{0};  // model
  Duration sample{0};   // logits processors, sampling, broadcast
  friend bool operator==(const StepTimings&, const StepTimings&) = default;
};

// What the row store of the padded KV layout holds after a step, and what it took to get there.
struct CellUse {
  std::uint64_t allocated = 0;  // cells of all parts
  std::uint64_t filled = 0;     // thereof positions that rows hold, those of this step included
  std::uint64_t copied = 0;     // moved between parts, or from blocks, by this step
  friend bool operator==(const CellUse&, const CellUse&) = default;
};

struct StepResult {
  Epoch epoch;
  StepId step;
  std::uint64_t digest = 0;  // over plan and control state; equal on all ranks or the group is lost
  std::vector<SequenceResult> sequences;
  StepTimings timings;
  std::uint64_t memory_bytes = 0;  // allocated by the rank now
  CellUse cells;
  std::uint32_t drafted = 0;  // rows that were guesses (--speculate), of all sequences
  // Sequences that have no token of this step because the mask of their grammar was not ready
  // (GroupLimits::late_masks).
  std::uint32_t late_masks = 0;
  friend bool operator==(const StepResult&, const StepResult&) = default;
};

}  // namespace penstock
