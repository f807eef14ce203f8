// Warpers: temperature and the filters that decide which tokens may be drawn. The order is that of
// HF transformers and TGI: temperature, top-k, top-p, min-p, typical-p, with top-n-sigma before
// them. Each filter sees only the tokens that the one before has kept, with renormalised
// probabilities. Exact rules: docs/api/sampling.md.
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

// Ties by token id.
inline bool MoreProbable(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// Sets `out` to the tokens that pass all filters, by ascending id. It is not empty if one logit is
// finite. `logits` are processed, but not divided by the temperature.
void FilterCandidates(const SamplingParams& params, std::span<const float> logits,
                      std::vector<Candidate>& out);

}  // namespace penstock::shard
