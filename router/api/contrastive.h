// Contrastive search as dialects ask for it: penalty_alpha with top_k candidates.
#pragma once

#include <cstdint>
#include <optional>

#include "common/plan/sampling.h"
#include "router/api/errors.h"
#include "router/engine.h"

namespace penstock::router {

// Candidates of a request with penalty_alpha and no top_k, as in the papers.
inline constexpr std::uint32_t kUsualCandidates = 4;

// Makes `sampling` a contrastive search; alpha 0 leaves it as it is. What only sampling uses
// (temperature, top_p, …) is switched off, as in HF transformers; penalties stay. The error names
// field, value and limit.
std::optional<ApiError> LowerContrastive(const ModelFacts& facts, float alpha,
                                         std::optional<std::int64_t> top_k, bool do_sample,
                                         SamplingParams& sampling);

}  // namespace penstock::router
