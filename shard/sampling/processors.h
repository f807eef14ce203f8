// Logits processors: what changes a row of logits before the pick. All in float32, in place.
// Order as in HF transformers, definitions in docs/api/sampling.md:
//   logit bias -> repetition penalty -> frequency and presence penalty -> masked tokens
// (warpers follow only when sampling: filters.h).
#pragma once

#include <span>

#include "common/plan/sampling.h"
#include "shard/sampling/token_history.h"

namespace penstock::shard {

// True when a history is needed to process with these parameters.
bool NeedsHistory(const SamplingParams& params);

// `history` may be null when NeedsHistory is false. `masked` tokens become -inf (end tokens before
// min_new_tokens). Token ids outside the row are ignored: they cannot be generated.
void ProcessLogits(const SamplingParams& params, const TokenHistory* history,
                   std::span<const TokenId> masked, std::span<float> logits);

}  // namespace penstock::shard
