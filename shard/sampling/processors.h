// Logits processors change a row of logits before sampling. They work in float32 and in place.
// Order as in HF transformers, definitions in docs/api/sampling.md:
//   logit bias -> repetition penalty -> frequency and presence penalty -> masked tokens
// (warpers, see filters.h, follow if do_sample is set)
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "common/ids.h"
#include "common/plan/sampling.h"

namespace penstock::shard {

// How often each token was generated, and which tokens the prompt has. It follows from the token
// ids, so it can be rebuilt after a preemption or a restart.
class TokenHistory {
 public:
  void AddPrompt(std::span<const TokenId> tokens) {
    for (TokenId token : tokens) counts_.try_emplace(token, 0);
  }
  void AddGenerated(TokenId token) { ++counts_[token]; }

  // By token of prompt and output: how often it was generated.
  const std::unordered_map<TokenId, std::uint32_t>& counts() const { return counts_; }

 private:
  std::unordered_map<TokenId, std::uint32_t> counts_;
};

// Whether ProcessLogits needs a history with these parameters.
bool NeedsHistory(const SamplingParams& params);

// `history` may be null if NeedsHistory is false. The logits of `masked` tokens (end tokens before
// min_new_tokens) become -inf. Token ids outside the row are ignored.
void ProcessLogits(const SamplingParams& params, const TokenHistory* history,
                   std::span<const TokenId> masked, std::span<float> logits);

}  // namespace penstock::shard
