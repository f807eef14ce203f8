// Warpers: temperature and the filters that leave some tokens to draw from, in the order of HF
// transformers and TGI: temperature -> top-k -> top-p -> min-p -> typical-p, each acting on the
// survivors of the one before, renormalised. Exact rules: docs/api/sampling.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/sampling.h"

namespace penstock::shard {

struct Candidate {
  std::uint32_t token;
  float logit;  // after temperature
};

// Survivors of all filters, ascending by token id; never empty when one logit is finite.
// `logits` are processed logits, not yet divided by temperature. `out` is reused scratch.
void FilterCandidates(const SamplingParams& params, std::span<const float> logits,
                      std::vector<Candidate>& out);

}  // namespace penstock::shard
