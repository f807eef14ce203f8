// How the next token of a sequence is chosen. Opaque to the scheduler; executed by shard/sampling.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"

namespace penstock {

// Neutral values switch a processor off. router/api and shard/service check the ranges, so all
// other code may rely on them.
struct SamplingParams {
  bool do_sample = false;           // false: argmax after penalties, ties to the lowest id
  float temperature = 1.0f;         // > 0
  std::uint32_t top_k = 0;          // 0 = off
  float top_p = 1.0f;               // (0, 1]; 1 = off
  float typical_p = 1.0f;           // (0, 1]; 1 = off
  float min_p = 0.0f;               // [0, 1); 0 = off
  float top_n_sigma = 0.0f;         // >= 0; 0 = off
  float repetition_penalty = 1.0f;  // > 0; counts prompt and generated tokens (CTRL rule)
  float frequency_penalty = 0.0f;   // [-2, 2]; counts generated tokens only (OpenAI rule)
  float presence_penalty = 0.0f;    // [-2, 2]; generated tokens only
  std::uint64_t seed = 0;           // key of the Philox generator; position is the counter
  std::uint32_t sibling = 0;        // best_of / n: part of the Philox key
  struct LogitBias {
    TokenId token;
    float bias;  // [-100, 100]
    friend bool operator==(const LogitBias&, const LogitBias&) = default;
  };
  std::vector<LogitBias> logit_bias;
  // Sequences of tokens that the text must not contain. None is empty.
  std::vector<std::vector<TokenId>> bad_words;
  bool watermark = false;  // raise the logits of green tokens (shard/sampling/watermark.h)
  // The alpha of contrastive search (Su et al. 2022), in [0, 1]; 0 = off. Not with do_sample. Of
  // the top_k most probable tokens it takes the one with the largest (1 - alpha) * probability -
  // alpha * similarity. See docs/api/sampling.md.
  float penalty_alpha = 0.0f;

  // Rows that a decode computes for one token; 0 = no contrastive search. With a single candidate
  // there is nothing to compare, so the decode is greedy.
  std::uint32_t Candidates() const {
    return !do_sample && penalty_alpha > 0 && top_k > 1 ? top_k : 0;
  }

  // The divisor of logits. At its minimum only the most probable token can be sampled. A smaller
  // divisor would overflow.
  float Divisor() const { return std::max(temperature, 1e-25f); }
  // The factor of the repetition penalty, clamped so that logits stay finite.
  float Repetition() const { return std::clamp(repetition_penalty, 1e-6f, 1e6f); }

  friend bool operator==(const SamplingParams&, const SamplingParams&) = default;
};

// What the shard reports with each sampled token.
struct LogprobRequest {
  enum class Kind : std::uint8_t {
    kNone,       // no logprobs
    kRaw,        // log-softmax of the model's logits
    kProcessed,  // log-softmax after all processors (what TGI reports)
  };
  Kind kind = Kind::kNone;
  std::uint32_t top_n = 0;       // alternatives per token, most probable first
  bool prompt_logprobs = false;  // one per prompt token; the first has none
  // Alternatives per prompt token, with prompt_logprobs. The token's rank comes with them.
  std::optional<std::uint32_t> prompt_top_n;

  friend bool operator==(const LogprobRequest&, const LogprobRequest&) = default;
};

}  // namespace penstock
