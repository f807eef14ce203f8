#include "shard/sampling/processors.h"

#include <cstddef>
#include <limits>

namespace penstock::shard {
namespace {

bool InRow(TokenId token, std::span<const float> logits) {
  return token >= 0 && static_cast<std::size_t>(token) < logits.size();
}

// CTRL (Keskar et al. 2019): once for each distinct token of prompt and output.
float Repeat(float logit, float penalty) { return logit < 0 ? logit * penalty : logit / penalty; }

void Penalise(const SamplingParams& params, const TokenHistory& history, std::span<float> logits) {
  const float repetition = params.Repetition();
  for (const auto& [token, count] : history.counts()) {
    if (!InRow(token, logits)) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = Repeat(logit, repetition);
    if (count == 0) continue;
    logit -= params.frequency_penalty * static_cast<float>(count);
    logit -= params.presence_penalty;
  }
}

}  // namespace

bool NeedsHistory(const SamplingParams& params) {
  return params.repetition_penalty != 1.0f || params.frequency_penalty != 0.0f ||
         params.presence_penalty != 0.0f;
}

void ProcessLogits(const SamplingParams& params, const TokenHistory* history,
                   std::span<const TokenId> masked, std::span<float> logits) {
  for (const auto& [token, bias] : params.logit_bias) {
    if (InRow(token, logits)) logits[static_cast<std::size_t>(token)] += bias;
  }
  if (history != nullptr && NeedsHistory(params)) Penalise(params, *history, logits);
  for (TokenId token : masked) {
    if (!InRow(token, logits)) continue;
    logits[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace penstock::shard
