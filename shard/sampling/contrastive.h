// Contrastive search (Su et al., "A Contrastive Framework for Neural Text Generation", NeurIPS
// 2022) by the rule of HF transformers. The candidates are the most probable next tokens. A forward
// pass computes the hidden state of each; then one is chosen. Exact rules: docs/api/sampling.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/plan/step_result.h"

namespace penstock::shard {

// The most probable next tokens of one sequence, most probable first, ties by token id.
struct CandidateSet {
  std::vector<SampledToken> tokens;  // with the requested logprobs
  std::vector<float> probabilities;  // of the whole vocabulary, not renormalised

  void Clear() {
    tokens.clear();
    probabilities.clear();
  }
};

// Index of the largest (1 - alpha) * probability - alpha * similarity, the first of equal ones.
// nullopt if a similarity is not a number.
std::optional<std::uint32_t> ChooseCandidate(float alpha, std::span<const float> probabilities,
                                             std::span<const float> similarities);

}  // namespace penstock::shard
