// Logits processors change a row of logits before sampling. They work in float32 and in place.
// Order as in HF transformers, definitions in docs/api/sampling.md:
//   logit bias -> repetition penalty -> frequency and presence penalty -> masked tokens
// (warpers, see filters.h, follow if do_sample is set)
#pragma once

#include <span>

#include "common/plan/sampling.h"
#include "shard/sampling/token_history.h"

namespace penstock::shard {

// Whether ProcessLogits needs a history with these parameters.
bool NeedsHistory(const SamplingParams& params);

// `history` may be null if NeedsHistory is false. The logits of `masked` tokens (end tokens before
// min_new_tokens) become -inf. Token ids outside the row are ignored.
void ProcessLogits(const SamplingParams& params, const TokenHistory* history,
                   std::span<const TokenId> masked, std::span<float> logits);

}  // namespace penstock::shard
