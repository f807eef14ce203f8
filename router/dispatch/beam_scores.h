// The bookkeeping of one beam search: which continuations live on, which are finished, when it is
// over. The rules are those of transformers, so that the same log-probabilities give the same
// texts:
// * A continuation's score is the sum of the log-probabilities of its tokens.
// * Of the (1 + E) * width best continuations, where E is the number of tokens that end a text and
//   at least 1, the best `width` that do not end live on. One that ends counts only among the first
//   `width`. Its final score is its score / tokens ^ length_penalty.
// * The search ends at the greatest length, or when no text may become better than the worst of
//   `width` finished ones. With EarlyStopping::kFull it ends once `width` texts are finished.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/plan/step_result.h"
#include "router/engine.h"

namespace penstock::router {

struct BeamLimits {
  std::uint32_t max_new_tokens = 1;
  std::uint32_t min_new_tokens = 0;  // no text ends before
  std::uint32_t shown = 0;           // alternatives of each token that are kept for the client
  std::vector<TokenId> ends;         // tokens that end a text
};

class BeamScores {
 public:
  // The probable next tokens of a running text, the most probable first.
  using Continuations = std::vector<TokenLogprob>;

  struct Finished {
    std::vector<SampledToken> tokens;
    bool ended = false;  // by its last token; else by the length
  };

  BeamScores(BeamParams params, BeamLimits limits);

  // How many continuations of each running text a step needs.
  std::uint32_t alternatives() const { return kept_ + static_cast<std::uint32_t>(ends_.size()); }
  std::size_t running() const { return running_.size(); }
  std::vector<TokenId> RunningTokens(std::size_t beam) const;

  // [i] continues the running text i. Returns whether another step is needed.
  bool Advance(std::span<const Continuations> next);

  // When no step is needed: the best texts, the best first.
  std::vector<Finished> Best(std::size_t count) const;

 private:
  // Texts are paths through their tokens, from the last one back.
  struct Node {
    std::size_t before = 0;
    SampledToken token;
  };
  struct Beam {
    std::size_t last = 0;
    double score = 0;
    bool ended = false;
  };
  struct Candidate {
    std::size_t beam = 0;
    TokenLogprob token;
    double score = 0;
  };

  std::vector<Candidate> Candidates(std::span<const Continuations> next) const;
  bool Ends(TokenId token) const;
  void Finish(const Candidate& candidate, const Beam& beam);
  bool MayImprove() const;
  double Final(double score, std::uint32_t tokens) const;
  Beam Extend(const Candidate& candidate, std::span<const Continuations> next);

  const BeamParams params_;
  const std::uint32_t max_new_tokens_;
  const std::uint32_t min_new_tokens_;
  const std::uint32_t shown_;
  const std::vector<TokenId> ends_;
  const std::uint32_t kept_;  // candidates of a step
  std::uint32_t length_ = 0;  // of the running texts
  std::vector<Node> nodes_;   // [0] is the end of the prompt
  std::vector<Beam> running_;
  std::vector<Beam> finished_;  // the best first
};

}  // namespace penstock::router
