#include "shard/sampling/filters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>

#include "shard/sampling/row_scan.h"

namespace penstock::shard {
namespace {

using Candidates = std::vector<Candidate>;

bool LowerId(const Candidate& a, const Candidate& b) { return a.token < b.token; }

float MaxLogit(const Candidates& candidates) {
  float best = -std::numeric_limits<float>::infinity();
  for (const Candidate& candidate : candidates) best = std::max(best, candidate.logit);
  return best;
}

double Mass(const Candidates& candidates, float max_logit) {
  double mass = 0;
  for (const Candidate& candidate : candidates) mass += std::exp(candidate.logit - max_logit);
  return mass;
}

// Keeps every token that is at least as probable as the k-th, so ties are kept (as in HF and TGI).
void TopK(std::uint32_t k, Candidates& candidates) {
  if (k == 0 || k >= candidates.size()) return;
  const auto kth = candidates.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(candidates.begin(), kth, candidates.end(), MoreProbable);
  const float border = kth->logit;
  std::erase_if(candidates, [border](const Candidate& c) { return c.logit < border; });
}

// Keeps the smallest set of most probable tokens with mass >= p; ties are split by token id. Sorts
// no more tokens than necessary.
void TopP(float p, Candidates& candidates) {
  if (p >= 1.0f || candidates.size() < 2) return;
  const float max_logit = MaxLogit(candidates);
  const double wanted = static_cast<double>(p) * Mass(candidates, max_logit);
  double before = 0;
  std::size_t kept = 0;
  std::size_t sorted = 0;
  while (kept < candidates.size() && before < wanted) {
    if (kept == sorted) {
      sorted = std::min(candidates.size(), std::max<std::size_t>(256, sorted * 8));
      std::partial_sort(candidates.begin() + static_cast<std::ptrdiff_t>(kept),
                        candidates.begin() + static_cast<std::ptrdiff_t>(sorted), candidates.end(),
                        MoreProbable);
    }
    before += std::exp(candidates[kept].logit - max_logit);
    ++kept;
  }
  candidates.resize(std::max<std::size_t>(1, kept));
}

void MinP(float min_p, Candidates& candidates) {
  if (min_p <= 0.0f) return;
  const float border = MaxLogit(candidates) + std::log(min_p);
  std::erase_if(candidates, [border](const Candidate& c) { return c.logit < border; });
}

// Meister et al. 2023: keeps the tokens whose information is closest to the entropy, up to mass m.
void Typical(float m, Candidates& candidates) {
  if (m >= 1.0f || candidates.size() < 2) return;
  const float max_logit = MaxLogit(candidates);
  const double log_mass = std::log(Mass(candidates, max_logit));
  double entropy = 0;
  for (const Candidate& c : candidates) {
    const double log_p = c.logit - max_logit - log_mass;
    entropy -= std::exp(log_p) * log_p;
  }
  struct Deviation {
    double distance;
    double probability;
    std::uint32_t token;
  };
  std::vector<Deviation> order;
  order.reserve(candidates.size());
  for (const Candidate& c : candidates) {
    const double log_p = c.logit - max_logit - log_mass;
    order.push_back({std::abs(-log_p - entropy), std::exp(log_p), c.token});
  }
  std::vector<Deviation> sorted = order;
  std::sort(sorted.begin(), sorted.end(), [](const Deviation& a, const Deviation& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.token < b.token;
  });
  double mass = 0;
  std::size_t last = 0;
  while (last + 1 < sorted.size() && (mass += sorted[last].probability) < m) ++last;
  const double border = sorted[last].distance;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (order[i].distance <= border) candidates[kept++] = candidates[i];
  }
  candidates.resize(kept);
}

// The k-th largest block maximum. At least k tokens have this logit or more, so a token below it is
// not among the k most probable. -inf if fewer than k maxima are finite.
float LowerBoundOfTop(std::uint32_t k, std::vector<float> maxima) {
  if (k > maxima.size()) return kMinusInfinity;
  const auto kth = maxima.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(maxima.begin(), kth, maxima.end(), std::greater<>());
  return *kth;
}

// Tang et al. 2024 (arXiv:2411.07641): the largest logit less n standard deviations of the row.
// Masked tokens do not count. The temperature would divide both sides alike.
float SigmaBorder(float n, std::span<const float> logits) {
  if (n <= 0.0f) return kMinusInfinity;
  double largest = kMinusInfinity, sum = 0, squares = 0;
  std::size_t count = 0;
  for (const float logit : logits) {
    if (logit == kMinusInfinity) continue;
    largest = std::max<double>(largest, logit);
    sum += logit;
    ++count;
  }
  const double mean = sum / static_cast<double>(count);
  for (const float logit : logits) {
    if (logit != kMinusInfinity) squares += (logit - mean) * (logit - mean);
  }
  const double border = largest - n * std::sqrt(squares / static_cast<double>(count));
  return static_cast<float>(std::min(border, largest));
}

// Collects all tokens with a logit of at least `border` that may be among the `k` most probable
// after temperature, and possibly more; all tokens for k = 0. Reads single tokens only in blocks
// whose maximum is large enough.
void Collect(std::span<const float> logits, float temperature, float border, std::uint32_t k,
             Candidates& out) {
  std::vector<float> maxima;
  float bound = kMinusInfinity;
  if (k > 0) {
    BlockMaxima(logits, maxima);
    // Different logits can be equal after the division, so it comes before the comparison.
    bound = LowerBoundOfTop(k, maxima) / temperature;
  }
  for (std::size_t first = 0; first < logits.size(); first += kMaximumBlock) {
    if (k > 0 && maxima[first / kMaximumBlock] / temperature < bound) continue;
    const std::size_t end = std::min(logits.size(), first + kMaximumBlock);
    for (std::size_t token = first; token < end; ++token) {
      const float logit = logits[token] / temperature;
      if (logits[token] == kMinusInfinity || logits[token] < border || logit < bound) continue;
      out.push_back({static_cast<std::uint32_t>(token), logit});
    }
  }
}

}  // namespace

void FilterCandidates(const SamplingParams& params, std::span<const float> logits,
                      std::vector<Candidate>& out) {
  out.clear();
  Collect(logits, params.Divisor(), SigmaBorder(params.top_n_sigma, logits), params.top_k, out);
  if (out.empty()) return;
  TopK(params.top_k, out);
  TopP(params.top_p, out);
  MinP(params.min_p, out);
  Typical(params.typical_p, out);
  if (!std::is_sorted(out.begin(), out.end(), LowerId)) {
    std::sort(out.begin(), out.end(), LowerId);
  }
}

}  // namespace penstock::shard
