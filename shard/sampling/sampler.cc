#include "shard/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "common/status.h"
#include "shard/sampling/philox.h"
#include "shard/sampling/processors.h"
#include "shard/sampling/row_scan.h"

namespace penstock::shard {
namespace {

double LogSumExp(std::span<const float> logits, float max_logit) {
  return max_logit + std::log(SumOfExponents(logits, max_logit));
}

// Sets `top` to the n most probable of `all`, most probable first.
void SelectTop(const std::vector<Candidate>& all, std::uint32_t n, std::vector<Candidate>& top) {
  top.resize(std::min<std::size_t>(n, all.size()));
  std::partial_sort_copy(all.begin(), all.end(), top.begin(), top.end(), MoreProbable);
}

void Append(const std::vector<Candidate>& top, double log_sum, SampledToken& sampled) {
  for (const Candidate& candidate : top) {
    sampled.alternatives.push_back(
        {static_cast<TokenId>(candidate.token), static_cast<float>(candidate.logit - log_sum)});
  }
}

}  // namespace

// Keeps the token with the largest p/q. A token with u <= 1 - p/best cannot win, because
// exp(-x) >= 1 - x. This avoids the logarithm for nearly all tokens of a large vocabulary.
std::uint32_t Sampler::Draw(const SampleRequest& request, float max_logit) {
  TokenNoise noise(request.params.seed, request.params.sibling, request.position);
  std::uint32_t winner = candidates_.front().token;
  double best = 0;
  for (const Candidate& candidate : candidates_) {
    const double u = noise.Uniform(candidate.token);
    const double p = std::exp(candidate.logit - max_logit);
    if (u <= 1.0 - p / best) continue;  // with best = 0 this is -inf and skips no token
    const double score = p / -std::log(u);
    if (score > best) {
      best = score;
      winner = candidate.token;
    }
  }
  return winner;
}

void Sampler::ReportRow(std::span<const float> logits, std::uint32_t top_n, SampledToken& sampled) {
  const double log_sum = LogSumExp(logits, FindMaximum(logits).logit);
  sampled.logprob = static_cast<float>(logits[static_cast<std::size_t>(sampled.token)] - log_sum);
  if (top_n == 0) return;
  SamplingParams filter;
  filter.top_k = top_n;
  FilterCandidates(filter, logits, candidates_);
  SelectTop(candidates_, top_n, top_);
  Append(top_, log_sum, sampled);
}

void Sampler::ReportCandidates(std::uint32_t top_n, SampledToken& sampled) {
  float max_logit = kMinusInfinity;
  for (const Candidate& candidate : candidates_) max_logit = std::max(max_logit, candidate.logit);
  double sum = 0;
  float logit = max_logit;
  for (const Candidate& candidate : candidates_) {
    sum += std::exp(candidate.logit - max_logit);
    if (static_cast<TokenId>(candidate.token) == sampled.token) logit = candidate.logit;
  }
  const double log_sum = max_logit + std::log(sum);
  sampled.logprob = static_cast<float>(logit - log_sum);
  SelectTop(candidates_, top_n, top_);
  Append(top_, log_sum, sampled);
}

// Processes the row. Returns its largest logit and sets `best` to that token.
absl::StatusOr<float> Sampler::Process(std::span<float> logits, const SampleRequest& request,
                                       std::uint32_t& best) {
  // A copy of the raw row is needed only if processing changes the row.
  if (request.logprobs.kind == LogprobRequest::Kind::kRaw) {
    raw_.assign(logits.begin(), logits.end());
  }
  if (!request.refusal.empty()) return absl::InternalError(request.refusal);
  if (request.params.watermark) FavourGreen(request.watermark, request.before, logits);
  ProcessLogits(request.params, request.history, request.masked, logits);
  if (!request.allowed.empty()) KeepOnly(request.allowed, logits);
  const RowMaximum maximum = FindMaximum(logits);
  if (maximum.nan) return absl::InternalError("the model gave NaN logits");
  if (!std::isfinite(maximum.logit)) return absl::InternalError("no token has a finite logit");
  best = maximum.token;
  return maximum.logit;
}

absl::StatusOr<SampledToken> Sampler::Sample(std::span<float> logits,
                                             const SampleRequest& request) {
  using Kind = LogprobRequest::Kind;
  std::uint32_t best = 0;
  PENSTOCK_ASSIGN_OR_RETURN(const float maximum, Process(logits, request, best));

  SampledToken sampled;
  sampled.token = static_cast<TokenId>(best);
  if (request.params.do_sample) {
    FilterCandidates(request.params, logits, candidates_);
    sampled.token = static_cast<TokenId>(Draw(request, maximum / request.params.Divisor()));
  }
  if (request.logprobs.kind == Kind::kNone) return sampled;
  if (request.logprobs.kind == Kind::kRaw) {
    ReportRow(raw_, request.logprobs.top_n, sampled);
  } else if (request.params.do_sample) {
    ReportCandidates(request.logprobs.top_n, sampled);
  } else {
    ReportRow(logits, request.logprobs.top_n, sampled);
  }
  return sampled;
}

absl::Status Sampler::FindCandidates(std::span<float> logits, const SampleRequest& request,
                                     CandidateSet& out) {
  using Kind = LogprobRequest::Kind;
  out = {};
  std::uint32_t best = 0;
  PENSTOCK_ASSIGN_OR_RETURN(const float maximum, Process(logits, request, best));
  const std::uint32_t wanted = request.params.Candidates();
  SamplingParams filter;
  filter.top_k = wanted;
  FilterCandidates(filter, logits, candidates_);
  SelectTop(candidates_, wanted, top_);
  const double log_sum = LogSumExp(logits, maximum);
  for (const Candidate& candidate : top_) {
    SampledToken& token = out.tokens.emplace_back();
    token.token = static_cast<TokenId>(candidate.token);
    out.probabilities.push_back(static_cast<float>(std::exp(candidate.logit - log_sum)));
  }
  if (request.logprobs.kind == Kind::kNone) return absl::OkStatus();
  const std::span<const float> row = request.logprobs.kind == Kind::kRaw ? raw_ : logits;
  for (SampledToken& token : out.tokens) ReportRow(row, request.logprobs.top_n, token);
  return absl::OkStatus();
}

Sampler::PromptReport Sampler::ReportPrompt(std::span<const float> logits, TokenId token,
                                            std::optional<std::uint32_t> top_n) {
  SampledToken reported;
  reported.token = token;
  ReportRow(logits, top_n.value_or(0), reported);
  PromptReport report{.logprob = reported.logprob, .alternatives = {}};
  if (!top_n) return report;
  const float own = logits[static_cast<std::size_t>(token)];
  const auto above = std::ranges::count_if(logits, [own](float logit) { return logit > own; });
  report.alternatives = {.rank = static_cast<std::uint32_t>(above) + 1,
                         .top = std::move(reported.alternatives)};
  return report;
}

}  // namespace penstock::shard
