#include "scheduler/step/batch_splitter.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {

bool WithinSparsity(std::uint64_t padding, std::uint64_t tokens, std::uint32_t max_sparsity_ppm) {
  const std::uint64_t cells = padding + tokens;
  return padding * 1'000'000 <= cells * max_sparsity_ppm;
}

const BatchPartition& BatchSplitter::Split(std::span<const SplitRow> rows, const SplitRule& rule) {
  Sort(rows);
  if (count_ == 0) return partition_;
  max_sparsity_ppm_ = rule.max_sparsity_ppm;
  const std::uint32_t most = std::clamp(rule.max_splits, 1u, count_);
  const std::uint32_t parts = rule.objective == SplitObjective::kSparsity
                                  ? ChooseBySparsity(most)
                                  : ChooseByCost(most, rule);
  WriteEnds(parts);
  return partition_;
}

void BatchSplitter::Sort(std::span<const SplitRow> rows) {
  count_ = static_cast<std::uint32_t>(rows.size());
  std::vector<std::uint32_t>& order = partition_.order;
  order.resize(count_);
  for (std::uint32_t i = 0; i < count_; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [rows](std::uint32_t a, std::uint32_t b) {
    return rows[a].length != rows[b].length ? rows[a].length > rows[b].length : a < b;
  });
  lengths_.resize(count_);
  weights_.assign(1, 0);
  tokens_.assign(1, 0);
  for (std::uint32_t i = 0; i < count_; ++i) {
    const SplitRow& row = rows[order[i]];
    PENSTOCK_CHECK(row.weight > 0, "every row has a weight");
    lengths_[i] = row.length;
    weights_.push_back(weights_.back() + row.weight);
    tokens_.push_back(tokens_.back() + row.weight * row.length);
  }
  partition_.ends.clear();
  partition_.tokens = tokens_.back();
  partition_.padding = 0;
}

std::uint64_t BatchSplitter::RunPadding(std::uint32_t begin, std::uint32_t end) const {
  return lengths_[begin] * (weights_[end] - weights_[begin]) - (tokens_[end] - tokens_[begin]);
}

// Computes padding_ and cuts_ for `parts` parts from padding_ for one part less.
void BatchSplitter::AddLayer(std::uint32_t parts) {
  if (cuts_.size() < parts) cuts_.resize(parts);
  std::vector<std::uint32_t>& cuts = cuts_[parts - 1];
  cuts.resize(count_);
  if (parts == 1) {
    padding_.resize(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      padding_[i] = RunPadding(i, count_);
      cuts[i] = count_;
    }
    return;
  }
  std::swap(padding_, previous_);
  padding_.resize(count_);
  Solve(parts, 0, count_ - parts, 1, count_ - parts + 1);
}

// Solves for all begins in [first, last]. Their first cut lies in [low, high].
void BatchSplitter::Solve(std::uint32_t parts, std::uint32_t first, std::uint32_t last,
                          std::uint32_t low, std::uint32_t high) {
  const std::uint32_t begin = first + (last - first) / 2;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint32_t cut = 0;
  for (std::uint32_t at = std::max(low, begin + 1); at <= high; ++at) {
    const std::uint64_t padding = RunPadding(begin, at) + previous_[at];
    if (padding >= least) continue;
    least = padding;
    cut = at;
  }
  padding_[begin] = least;
  cuts_[parts - 1][begin] = cut;
  if (begin > first) Solve(parts, first, begin - 1, low, cut);
  if (begin < last) Solve(parts, begin + 1, last, cut, high);
}

std::uint32_t BatchSplitter::ChooseBySparsity(std::uint32_t most) {
  for (std::uint32_t parts = 1; parts <= most; ++parts) {
    AddLayer(parts);
    if (WithinSparsity(padding_[0], partition_.tokens, max_sparsity_ppm_)) return parts;
  }
  return most;
}

// Each further part saves less padding than the one before, so the first one that costs more than
// it saves ends the search.
std::uint32_t BatchSplitter::ChooseByCost(std::uint32_t most, const SplitRule& rule) {
  AddLayer(1);
  for (std::uint32_t parts = 1; parts < most; ++parts) {
    const std::uint64_t before = padding_[0];
    AddLayer(parts + 1);
    if ((before - padding_[0]) * rule.cell_cost <= rule.part_cost) return parts;
  }
  return most;
}

void BatchSplitter::WriteEnds(std::uint32_t parts) {
  std::uint32_t begin = 0;
  for (std::uint32_t left = parts; left > 0; --left) {
    const std::uint32_t end = cuts_[left - 1][begin];
    partition_.padding += RunPadding(begin, end);
    partition_.ends.push_back(end);
    begin = end;
  }
}

}  // namespace penstock::scheduler
