#include "router/dispatch/beam_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace penstock::router {
namespace {

std::uint32_t KeptOf(const BeamParams& params, std::size_t ends) {
  return params.width * (1 + static_cast<std::uint32_t>(std::max<std::size_t>(1, ends)));
}

}  // namespace

BeamScores::BeamScores(BeamParams params, BeamLimits limits)
    : params_(params),
      max_new_tokens_(limits.max_new_tokens),
      min_new_tokens_(limits.min_new_tokens),
      shown_(limits.shown),
      ends_(std::move(limits.ends)),
      kept_(KeptOf(params, ends_.size())),
      nodes_(1),
      running_(1) {}

std::vector<TokenId> BeamScores::RunningTokens(std::size_t beam) const {
  std::vector<TokenId> tokens(length_);
  std::size_t at = running_[beam].last;
  for (auto token = tokens.rbegin(); token != tokens.rend(); ++token, at = nodes_[at].before) {
    *token = nodes_[at].token.token;
  }
  return tokens;
}

bool BeamScores::Advance(std::span<const Continuations> next) {
  const std::vector<Candidate> candidates = Candidates(next);
  ++length_;
  const bool longest = length_ >= max_new_tokens_;
  const bool full = finished_.size() >= params_.width;
  const bool closed = full && params_.early_stopping == EarlyStopping::kFull;
  std::vector<Beam> running;
  for (std::size_t rank = 0; rank < candidates.size(); ++rank) {
    const bool ends = Ends(candidates[rank].token.token);
    const bool best = rank < params_.width;
    if (ends || longest) {
      if (!best || closed) continue;
      Beam beam = Extend(candidates[rank], next);
      beam.ended = ends;
      Finish(candidates[rank], beam);
    } else if (running.size() < params_.width) {
      running.push_back(Extend(candidates[rank], next));
    }
  }
  running_ = std::move(running);
  if (running_.empty()) return false;
  if (finished_.size() < params_.width) return true;
  return params_.early_stopping != EarlyStopping::kFull && MayImprove();
}

// The best continuations of all running texts. Of equal scores the first text's comes first.
std::vector<BeamScores::Candidate> BeamScores::Candidates(
    std::span<const Continuations> next) const {
  std::vector<Candidate> all;
  for (std::size_t beam = 0; beam < next.size(); ++beam) {
    for (const TokenLogprob& token : next[beam]) {
      const bool early = length_ < min_new_tokens_;
      if (!std::isfinite(token.logprob) || (early && Ends(token.token))) continue;
      all.push_back({beam, token, running_[beam].score + token.logprob});
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Candidate::score);
  if (all.size() > kept_) all.resize(kept_);
  return all;
}

bool BeamScores::Ends(TokenId token) const {
  return std::ranges::find(ends_, token) != ends_.end();
}

double BeamScores::Final(double score, std::uint32_t tokens) const {
  return score / std::pow(tokens, params_.length_penalty);
}

BeamScores::Beam BeamScores::Extend(const Candidate& candidate,
                                    std::span<const Continuations> next) {
  const Continuations& all = next[candidate.beam];
  const auto shown = static_cast<std::ptrdiff_t>(std::min<std::size_t>(shown_, all.size()));
  nodes_.push_back(
      {running_[candidate.beam].last,
       {candidate.token.token, candidate.token.logprob, {all.begin(), all.begin() + shown}}});
  return {nodes_.size() - 1, candidate.score};
}

// Keeps the best `width` ones.
void BeamScores::Finish(const Candidate& candidate, const Beam& beam) {
  Beam finished = beam;
  finished.score = Final(candidate.score, length_);
  const auto place =
      std::ranges::upper_bound(finished_, finished.score, std::ranges::greater(), &Beam::score);
  finished_.insert(place, finished);
  if (finished_.size() > params_.width) finished_.pop_back();
}

// By the length that flatters most: the present one, or, with EarlyStopping::kNever and a penalty
// that favours long texts, the greatest.
bool BeamScores::MayImprove() const {
  const bool greatest =
      params_.early_stopping == EarlyStopping::kNever && params_.length_penalty > 0;
  const double possible = Final(running_.front().score, greatest ? max_new_tokens_ : length_);
  return possible > finished_.back().score;
}

std::vector<BeamScores::Finished> BeamScores::Best(std::size_t count) const {
  std::vector<Finished> best;
  for (const Beam& beam : finished_) {
    if (best.size() == count) break;
    Finished& text = best.emplace_back();
    text.ended = beam.ended;
    for (std::size_t at = beam.last; at != 0; at = nodes_[at].before) {
      text.tokens.push_back(nodes_[at].token);
    }
    std::ranges::reverse(text.tokens);
  }
  return best;
}

}  // namespace penstock::router
