// Samples the next token of one sequence from its row of logits. The result depends only on the
// row, the parameters, the history and the position: not on the batch, the step or the thread.
//
// The draw is an exponential race: the sampled token is argmax p_i / q_i with q_i ~ Exp(1). Philox
// gives each token id its own q_i, so the noise of a token does not depend on other tokens.
//
// Threading: one Sampler per thread; it owns scratch memory.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/plan/sampling.h"
#include "common/plan/step_result.h"
#include "shard/sampling/filters.h"
#include "shard/sampling/processors.h"
#include "shard/sampling/token_mask.h"
#include "shard/sampling/watermark.h"

namespace penstock::shard {

// The prefix of errors that the client's grammar causes: it is not valid or too expensive.
inline constexpr std::string_view kGrammarError = "grammar: ";

struct SampleRequest {
  const SamplingParams& params;
  const LogprobRequest& logprobs;
  const TokenHistory* history = nullptr;  // may be null when NeedsHistory(params) is false
  std::span<const TokenId> masked;        // must not be sampled now
  std::uint32_t position = 0;             // index of the token in the request's output
  TokenMask allowed;                      // the grammar mask; empty: all tokens
  std::string refusal;                    // why no token can be sampled; empty: one can
  WatermarkSettings watermark;            // used if the parameters request it
  TokenId before = 0;                     // the previous token
};

// The most probable next tokens of one sequence, most probable first, ties by token id.
struct CandidateSet {
  std::vector<SampledToken> tokens;  // with the requested logprobs
  std::vector<float> probabilities;  // of the whole vocabulary, not renormalised
};

class Sampler {
 public:
  // `logits` has the length of the vocabulary and is overwritten. Internal if the row contains a
  // NaN or no token can be sampled; the caller then ends this sequence only.
  absl::StatusOr<SampledToken> Sample(std::span<float> logits, const SampleRequest& request);

  // What LogprobRequest reports of a prompt token: its log-probability, and with `top_n` the most
  // probable tokens and its rank among all.
  struct PromptReport {
    float logprob = 0.0f;
    PromptAlternatives alternatives;
  };
  PromptReport ReportPrompt(std::span<const float> logits, TokenId token,
                            std::optional<std::uint32_t> top_n);

  // The SamplingParams::Candidates() most probable tokens after the processors, without warpers.
  // Fewer if fewer tokens are allowed. Errors as above.
  absl::Status FindCandidates(std::span<float> logits, const SampleRequest& request,
                              CandidateSet& out);

 private:
  absl::StatusOr<float> Process(std::span<float> logits, const SampleRequest& request,
                                std::uint32_t& best);
  std::uint32_t Draw(const SampleRequest& request, float max_logit);
  void ReportRow(std::span<const float> logits, std::uint32_t top_n, SampledToken& sampled);
  void ReportCandidates(std::uint32_t top_n, SampledToken& sampled);

  std::vector<Candidate> candidates_;
  std::vector<Candidate> top_;
  std::vector<float> raw_;
};

}  // namespace penstock::shard
