#include "shard/sampling/contrastive.h"

#include <cmath>
#include <cstddef>

namespace penstock::shard {

std::optional<std::uint32_t> ChooseCandidate(float alpha, std::span<const float> probabilities,
                                             std::span<const float> similarities) {
  std::optional<std::uint32_t> winner;
  float best = 0;
  for (std::size_t i = 0; i < similarities.size(); ++i) {
    const float score = (1.0f - alpha) * probabilities[i] - alpha * similarities[i];
    if (std::isnan(score)) return std::nullopt;
    if (winner.has_value() && score <= best) continue;
    winner = static_cast<std::uint32_t>(i);
    best = score;
  }
  return winner;
}

}  // namespace penstock::shard
