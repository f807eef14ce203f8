// The result of one step plan. Only that of rank 0 has tokens; the other ranks send the digest
// alone.
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

// What else was probable at a position of the prompt.
struct PromptAlternatives {
  std::uint32_t rank = 0;  // of the prompt's own token: 1 + how many tokens have a larger logit
  std::vector<TokenLogprob> top;  // most probable first
  friend bool operator==(const PromptAlternatives&, const PromptAlternatives&) = default;
};

struct SampledToken {
  TokenId token = 0;
  float logprob = 0.0f;  // meaningful when logprobs were asked for
  std::vector<TokenLogprob> alternatives;
  // The grammar left no other text, so it was not sampled and has no logprob (v1::Limits).
  bool forced = false;
  friend bool operator==(const SampledToken&, const SampledToken&) = default;
};

// Most steps give a sequence one token, which then lies in the list itself.
using SampledTokens = absl::InlinedVector<SampledToken, 1>;

struct SequenceResult {
  SlotId slot;
  SequenceId sequence;
  // 0 to max_rows tokens, in order of position. One fewer than rows were committed if the mask of
  // the grammar was not ready: then a later decode gives that token and computes no row.
  SampledTokens tokens;
  std::uint32_t committed_length = 0;
  ShardFinish finish = ShardFinish::kNone;  // an EOS or stop token is the last of `tokens`
  // kError: one line for the client. Only a segment that samples can fail, so the prompt was
  // computed, and other sequences may read its blocks.
  std::string error;
  // For prompt segments with Logits::kAll: [i] is the logprob of prompt token first + i + 1. There
  // are `count` of them, one fewer in the last chunk. A prompt of P tokens has P - 1 in all.
  std::vector<float> prompt_logprobs;
  std::vector<PromptAlternatives> prompt_alternatives;  // for each of them, with prompt_top_n
  friend bool operator==(const SequenceResult&, const SequenceResult&) = default;
};

struct StepTimings {
  Duration queued{0};   // from the arrival of the plan until the model thread took it
  Duration forward{0};  // model
  Duration sample{0};   // logits processors, sampling, broadcast
  friend bool operator==(const StepTimings&, const StepTimings&) = default;
};

// Positions of the padded KV layout after a step.
struct CellUse {
  std::uint64_t allocated = 0;  // of all rows, with their padding
  std::uint64_t filled = 0;     // of these, with K and V, including this step
  std::uint64_t copied = 0;     // copied by this step, from blocks or between sub-batches
  friend bool operator==(const CellUse&, const CellUse&) = default;
};

struct StepResult {
  Epoch epoch;
  StepId step;
  std::uint64_t digest = 0;  // of plans and control state; if ranks differ, the group is lost
  std::vector<SequenceResult> sequences;
  StepTimings timings;
  std::uint64_t memory_bytes = 0;  // allocated by the rank now
  CellUse cells;
  std::uint32_t drafted = 0;  // rows of drafts (--speculate), of all sequences
  // Sequences without a token because the mask of their grammar was not ready
  // (v1::Limits::late_masks).
  std::uint32_t late_masks = 0;
  friend bool operator==(const StepResult&, const StepResult&) = default;
};

}  // namespace penstock
