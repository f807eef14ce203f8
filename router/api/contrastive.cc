#include "router/api/contrastive.h"

#include <algorithm>
#include <string>
#include <utility>

namespace penstock::router {
namespace {

ApiError Invalid(std::string field, std::string message) {
  return {ApiErrorKind::kValidation, std::move(message), std::move(field)};
}

}  // namespace

std::optional<ApiError> LowerContrastive(const ModelFacts& facts, float alpha,
                                         std::optional<std::int64_t> top_k, bool do_sample,
                                         SamplingParams& sampling) {
  if (!(alpha >= 0.0f && alpha <= 1.0f)) {
    return Invalid("penalty_alpha",
                   "`penalty_alpha` must be >= 0.0 and <= 1.0. Given: " + std::to_string(alpha));
  }
  if (alpha == 0.0f) return std::nullopt;
  if (facts.max_candidates == 0) {
    return ApiError{ApiErrorKind::kUnsupported,
                    "`penalty_alpha` needs the server's option contrastive-search",
                    "penalty_alpha"};
  }
  if (do_sample) {
    return Invalid("penalty_alpha", "`penalty_alpha` must be 0 when `do_sample` is true. Given: " +
                                        std::to_string(alpha));
  }
  const std::int64_t candidates = top_k.value_or(std::min(kUsualCandidates, facts.max_candidates));
  if (candidates < 1 || candidates > facts.max_candidates) {
    return Invalid("top_k", "`top_k` must be >= 1 and <= " + std::to_string(facts.max_candidates) +
                                " with `penalty_alpha`. Given: " + std::to_string(candidates));
  }
  SamplingParams search;
  search.repetition_penalty = sampling.repetition_penalty;
  search.frequency_penalty = sampling.frequency_penalty;
  search.presence_penalty = sampling.presence_penalty;
  search.logit_bias = std::move(sampling.logit_bias);
  search.seed = sampling.seed;
  search.sibling = sampling.sibling;
  search.penalty_alpha = alpha;
  search.top_k = static_cast<std::uint32_t>(candidates);
  sampling = std::move(search);
  return std::nullopt;
}

}  // namespace penstock::router
