// Picks the next token of one sequence from its row of logits. The result depends on the row, the
// parameters, the history and the position alone: not on the batch, the step or the thread.
//
// The draw is an exponential race: the winner is argmax p_i / q_i with q_i ~ Exp(1) from Philox,
// tied to token ids, so a filter or a last-bit change of other tokens does not shift the noise.
//
// Threading: one Sampler per thread; it owns scratch memory.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/plan/sampling.h"
#include "common/plan/step_result.h"
#include "shard/sampling/contrastive.h"
#include "shard/sampling/filters.h"
#include "shard/sampling/token_history.h"
#include "shard/sampling/token_mask.h"
#include "shard/sampling/watermark.h"

namespace penstock::shard {

struct SampleRequest {
  const SamplingParams& params;
  const LogprobRequest& logprobs;
  const TokenHistory* history = nullptr;  // may be null when NeedsHistory(params) is false
  std::span<const TokenId> masked;        // never picked this time
  std::uint32_t position = 0;             // index of the token in the request's output
  TokenMask allowed;                      // by a grammar; empty: all
  std::string refusal;                    // why no token can be picked; empty: one can
  WatermarkSettings watermark;            // used where the parameters ask for one
  TokenId before = 0;                     // the token that the row follows
};

class Sampler {
 public:
  // `logits`: float32 [vocabulary], overwritten. InternalError when the row holds NaN or nothing
  // can be picked; the caller ends that sequence alone.
  absl::StatusOr<SampledToken> Sample(std::span<float> logits, const SampleRequest& request);

  // The SamplingParams::Candidates() most probable tokens behind the processors (no warpers), fewer
  // where fewer may be picked. Errors as above.
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

// log softmax(logits)[token] in double, rounded once.
float LogSoftmaxAt(std::span<const float> logits, TokenId token);

}  // namespace penstock::shard
