#include "sim/model/decode_partition.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

namespace penstock::sim {
namespace {

using Parts = DecodePartition::Parts;
using Rows = std::vector<PartitionRow>;

constexpr std::uint32_t kStepsUntilComputedAgain = 32;
constexpr std::uint64_t kCellsOfAMove = 2;

std::uint64_t Longest(const Rows& rows, const std::vector<std::size_t>& part) {
  std::uint64_t longest = 0;
  for (const std::size_t row : part) longest = std::max(longest, rows[row].length);
  return longest;
}

// Query cells of a part, with its padding.
std::uint64_t CostOf(const Rows& rows, const std::vector<std::size_t>& part) {
  std::uint64_t weight = 0;
  for (const std::size_t row : part) weight += rows[row].weight;
  return weight * Longest(rows, part);
}

std::uint64_t CostOf(const Rows& rows, const Parts& parts) {
  std::uint64_t cost = 0;
  for (const auto& part : parts) cost += CostOf(rows, part);
  return cost;
}

std::uint64_t TokensOf(const Rows& rows) {
  std::uint64_t tokens = 0;
  for (const PartitionRow& row : rows) tokens += row.length * row.weight;
  return tokens;
}

bool IsSparse(std::uint64_t cells, std::uint64_t tokens, std::uint32_t limit_ppm) {
  return (cells - tokens) * 1'000'000 > cells * limit_ppm;
}

// For each number of parts, the partition of the rows sorted by length with the least cost. Of
// equal ones the one with the earliest cuts.
std::vector<Parts> BestByCount(const Rows& rows, std::size_t most) {
  const std::size_t n = rows.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&rows](std::size_t row) { return rows[row].length; });
  const auto run = [&order](std::size_t begin, std::size_t end) {
    return std::vector<std::size_t>(order.begin() + static_cast<std::ptrdiff_t>(begin),
                                    order.begin() + static_cast<std::ptrdiff_t>(end));
  };
  std::vector<std::vector<std::uint64_t>> costs(n, std::vector<std::uint64_t>(n + 1));
  for (std::size_t begin = 0; begin < n; ++begin) {
    std::uint64_t weight = 0;
    for (std::size_t end = begin + 1; end <= n; ++end) {
      weight += rows[order[end - 1]].weight;
      costs[begin][end] = weight * rows[order[begin]].length;
    }
  }
  // [begin]: the cuts of the rows from `begin` on, and their cost.
  std::vector<std::pair<std::uint64_t, std::vector<std::size_t>>> of_rest(n);
  for (std::size_t begin = 0; begin < n; ++begin) of_rest[begin] = {costs[begin][n], {n}};
  std::vector<Parts> best;
  for (std::size_t count = 1; count <= most; ++count) {
    Parts& parts = best.emplace_back();
    std::size_t begin = 0;
    for (const std::size_t end : of_rest[0].second) {
      parts.push_back(run(begin, end));
      std::ranges::sort(parts.back());
      begin = end;
    }
    auto longer = of_rest;
    for (begin = 0; begin + count < n; ++begin) {
      std::optional<std::size_t> cut;
      std::uint64_t least = 0;
      for (std::size_t at = begin + 1; at + count <= n; ++at) {
        const std::uint64_t cost = costs[begin][at] + of_rest[at].first;
        if (cut && cost >= least) continue;
        cut = at;
        least = cost;
      }
      longer[begin] = {least, {*cut}};
      longer[begin].second.insert(longer[begin].second.end(), of_rest[*cut].second.begin(),
                                  of_rest[*cut].second.end());
    }
    of_rest = std::move(longer);
  }
  return best;
}

// The old part that each new one continues: pairs that share most cells first. Takes the cells of
// the pairs from `moved_cells`.
std::map<std::size_t, std::size_t> Continue(const Rows& rows,
                                            const std::vector<std::optional<std::size_t>>& old_part,
                                            const Parts& fresh, std::uint64_t& moved_cells) {
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> shared;  // (new, old)
  for (std::size_t part = 0; part < fresh.size(); ++part) {
    for (const std::size_t row : fresh[part]) {
      if (!old_part[row]) continue;
      shared[{part, *old_part[row]}] += rows[row].length * rows[row].weight;
      moved_cells += rows[row].length * rows[row].weight;
    }
  }
  std::map<std::size_t, std::size_t> continues;
  while (!shared.empty()) {
    const auto most =
        std::ranges::max_element(shared, {}, [](const auto& entry) { return entry.second; });
    const auto [part, old] = most->first;
    continues[part] = old;
    moved_cells -= most->second;
    std::erase_if(shared, [part, old](const auto& entry) {
      return entry.first.first == part || entry.first.second == old;
    });
  }
  return continues;
}

}  // namespace

std::uint64_t LeastCells(const std::vector<std::uint64_t>& lengths, std::size_t max_parts) {
  Rows rows;
  for (const std::uint64_t length : lengths) rows.push_back({{}, length});
  const std::vector<Parts> best = BestByCount(rows, std::min(max_parts, rows.size()));
  std::uint64_t least = UINT64_MAX;
  for (const Parts& parts : best) least = std::min(least, CostOf(rows, parts));
  return least;
}

bool DecodePartition::Overflows(const Rows& rows, const Parts& parts) const {
  std::uint64_t cells = 0;
  for (const auto& part : parts) cells += part.size() * Longest(rows, part);
  return cells_ > 0 && cells > cells_;
}

Parts DecodePartition::Best(const Rows& rows, std::uint64_t launch) const {
  const std::size_t most = std::min<std::size_t>(config_.max_splits, rows.size());
  const std::vector<Parts> best = BestByCount(rows, most);
  std::size_t taken = 0;
  for (; taken + 1 < best.size(); ++taken) {
    const std::uint64_t cost = CostOf(rows, best[taken]);
    const bool enough = config_.split == scheduler::SplitObjective::kSparsity
                            ? !IsSparse(cost, TokensOf(rows), config_.max_sparsity_ppm)
                            : cost - CostOf(rows, best[taken + 1]) <= launch;
    if (enough) break;
  }
  if (!Overflows(rows, best[taken])) return best[taken];
  // The least memory: a row counts once, whatever it computes, and launches count nothing.
  Rows alone = rows;
  for (PartitionRow& row : alone) row.weight = 1;
  const std::vector<Parts> small = BestByCount(alone, most);
  taken = 0;
  while (taken + 1 < small.size() &&
         CostOf(alone, small[taken + 1]) < CostOf(alone, small[taken])) {
    ++taken;
  }
  return small[taken];
}

// Adds each new row to the part whose cost grows least. If a new part costs less, the row starts
// one.
void DecodePartition::PlaceNew(const Rows& rows, std::uint64_t launch, Parts& parts) const {
  std::vector<bool> placed(rows.size());
  for (const auto& part : parts) {
    for (const std::size_t row : part) placed[row] = true;
  }
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (placed[row]) continue;
    std::optional<std::size_t> best;
    std::uint64_t least = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      std::vector<std::size_t> with = parts[p];
      with.push_back(row);
      const std::uint64_t added = CostOf(rows, with) - CostOf(rows, parts[p]);
      if (best && added >= least) continue;
      best = p;
      least = added;
    }
    const bool alone = best && least > rows[row].length * rows[row].weight + launch;
    if (!best || (alone && parts.size() < config_.max_splits)) {
      best = parts.size();
      parts.emplace_back();
    }
    parts[*best].push_back(row);
  }
}

bool DecodePartition::Pays(const Rows& rows, const Parts& kept, const Parts& fresh,
                           std::uint64_t launch, std::uint64_t moved_cells) const {
  std::uint64_t before = CostOf(rows, kept);
  std::uint64_t after = CostOf(rows, fresh);
  const std::uint64_t tokens = TokensOf(rows);
  const std::uint32_t limit = config_.max_sparsity_ppm;
  const bool too_sparse = config_.split == scheduler::SplitObjective::kSparsity &&
                          IsSparse(before, tokens, limit) && !IsSparse(after, tokens, limit);
  if (!too_sparse) {
    before += kept.size() * launch;
    after += fresh.size() * launch;
  }
  return before > after &&
         (before - after) * kStepsUntilComputedAgain > moved_cells * kCellsOfAMove;
}

void DecodePartition::Update(const Rows& rows, std::uint64_t launch) {
  const bool first = members_.empty();
  const std::size_t parts_before = parts_.size();
  std::vector<std::optional<std::size_t>> old_part(rows.size());
  Parts kept(parts_.size());
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto was = [&](std::size_t member) { return members_[member] == rows[row].sequence; };
      if (std::ranges::any_of(parts_[p], was)) kept[p].push_back(row);
    }
  }
  std::vector<SequenceId> members;
  for (const PartitionRow& row : rows) members.push_back(row.sequence);
  const bool same = members == members_;
  members_ = std::move(members);
  renewed_ = false;
  moved_.clear();
  if (same && ++steps_ < kStepsUntilComputedAgain && !Overflows(rows, kept)) {
    parts_ = std::move(kept);
    return;
  }
  steps_ = 0;
  std::erase_if(kept, [](const auto& part) { return part.empty(); });
  for (std::size_t p = 0; p < kept.size(); ++p) {
    for (const std::size_t row : kept[p]) old_part[row] = p;
  }
  PlaceNew(rows, launch, kept);
  Parts fresh = Best(rows, launch);
  std::uint64_t moved_cells = 0;
  const auto continues = Continue(rows, old_part, fresh, moved_cells);
  if (!first && !Overflows(rows, kept) && !Pays(rows, kept, fresh, launch, moved_cells)) {
    for (auto& part : kept) std::ranges::sort(part);
    parts_ = std::move(kept);
    return;
  }
  for (std::size_t p = 0; p < fresh.size(); ++p) {
    const auto old = continues.find(p);
    for (const std::size_t row : fresh[p]) {
      if (!old_part[row] || old == continues.end() || *old_part[row] != old->second) {
        moved_.insert(row);
      }
    }
  }
  parts_ = std::move(fresh);
  renewed_ = parts_.size() > 1 || parts_before > 1;
}

}  // namespace penstock::sim
