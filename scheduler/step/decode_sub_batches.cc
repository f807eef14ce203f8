#include "scheduler/step/decode_sub_batches.h"

#include <algorithm>
#include <utility>

#include "scheduler/step/padded_bound.h"

namespace penstock::scheduler {
namespace {

std::uint64_t TokensOf(std::span<const DecodeRow> rows) {
  std::uint64_t tokens = 0;
  for (const DecodeRow& row : rows) tokens += row.length * row.weight;
  return tokens;
}

}  // namespace

bool DecodeSubBatches::Update(std::span<const DecodeRow> rows, std::uint64_t launch_cells) {
  const bool same = SameMembers(rows);
  const bool first = members_.empty();
  const std::uint32_t parts_before = parts();
  CarryOver(rows);
  moved_.assign(rows.size(), false);
  if (same && ++steps_since_ < kResplitSteps && !Overflows(sizes_)) return false;
  steps_since_ = 0;
  DropEmptyParts();
  if (rows.empty()) return false;
  PlaceNewRows(rows, launch_cells);
  rule_.part_cost = launch_cells;
  ComputeFresh(rows, rule_, true);
  const bool must = Overflows(sizes_);
  if (Overflows(fresh_sizes_)) ComputeFresh(rows, LeastCellsRule(rule_.max_splits), false);
  const std::uint64_t moved_cells = MatchParts(rows);
  if (!first && !must && !Pays(launch_cells, TokensOf(rows), moved_cells)) return false;
  TakeFresh();
  return parts() > 1 || parts_before > 1;
}

bool DecodeSubBatches::SameMembers(std::span<const DecodeRow> rows) const {
  return std::equal(rows.begin(), rows.end(), members_.begin(), members_.end(),
                    [](const DecodeRow& row, SequenceId member) { return row.sequence == member; });
}

// The old partition of the rows that are left, with their present lengths.
void DecodeSubBatches::CarryOver(std::span<const DecodeRow> rows) {
  carried_.clear();
  std::fill(sizes_.begin(), sizes_.end(), PartSize{});
  tokens_ = 0;
  std::size_t member = 0;
  for (const DecodeRow& row : rows) {
    while (member < members_.size() && members_[member] < row.sequence) ++member;
    const bool known = member < members_.size() && members_[member] == row.sequence;
    carried_.push_back(known ? part_[member] : kNone);
    tokens_ += row.length;
    if (known) sizes_[part_[member]].Add(row);
  }
  members_.clear();
  for (const DecodeRow& row : rows) members_.push_back(row.sequence);
  part_ = carried_;
}

// Puts each new row where it adds the fewest cells, or into a part of its own if that costs less.
void DecodeSubBatches::PlaceNewRows(std::span<const DecodeRow> rows, std::uint64_t launch_cells) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (part_[i] != kNone) continue;
    const DecodeRow& row = rows[i];
    std::uint64_t least = UINT64_MAX;
    for (std::uint32_t p = 0; p < sizes_.size(); ++p) {
      PartSize with = sizes_[p];
      with.Add(row);
      const std::uint64_t added = with.Cost() - sizes_[p].Cost();
      if (added >= least) continue;
      least = added;
      part_[i] = p;
    }
    const bool alone = least > row.length * row.weight + launch_cells;
    if (sizes_.empty() || (alone && sizes_.size() < rule_.max_splits)) {
      part_[i] = parts();
      sizes_.emplace_back();
    }
    sizes_[part_[i]].Add(row);
  }
}

void DecodeSubBatches::DropEmptyParts() {
  for (std::uint32_t p = 0; p < sizes_.size();) {
    if (sizes_[p].weight > 0) {
      ++p;
      continue;
    }
    sizes_.erase(sizes_.begin() + p);
    for (auto* parts : {&part_, &carried_}) {
      for (std::uint32_t& part : *parts) {
        if (part != kNone && part > p) --part;
      }
    }
  }
}

void DecodeSubBatches::ComputeFresh(std::span<const DecodeRow> rows, const SplitRule& rule,
                                    bool weighted) {
  split_rows_.clear();
  for (const DecodeRow& row : rows) split_rows_.push_back({row.length, weighted ? row.weight : 1});
  const BatchPartition& partition = splitter_.Split(split_rows_, rule);
  fresh_.resize(rows.size());
  fresh_sizes_.assign(partition.ends.size(), PartSize{});
  for (std::uint32_t p = 0; p < partition.ends.size(); ++p) {
    for (const std::uint32_t i : partition.Part(p)) {
      fresh_[i] = p;
      fresh_sizes_[p].Add(rows[i]);
    }
  }
}

// Pairs new parts with old ones, beginning with the pair that shares most cells. Returns the cells
// of rows that leave their old part. New rows must be written anyway, so they do not count.
std::uint64_t DecodeSubBatches::MatchParts(std::span<const DecodeRow> rows) {
  const std::size_t old_parts = sizes_.size();
  std::vector<std::uint64_t> shared(fresh_sizes_.size() * old_parts, 0);
  std::uint64_t moved = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (carried_[i] == kNone) continue;
    const std::uint64_t cells = rows[i].length * rows[i].weight;
    shared[fresh_[i] * old_parts + carried_[i]] += cells;
    moved += cells;
  }
  base_.assign(fresh_sizes_.size(), kNone);
  for (;;) {
    const auto most = std::max_element(shared.begin(), shared.end());
    if (most == shared.end() || *most == 0) return moved;
    const auto pair = static_cast<std::size_t>(most - shared.begin());
    const std::size_t fresh = pair / old_parts;
    const std::size_t old = pair % old_parts;
    moved -= *most;
    base_[fresh] = static_cast<std::uint32_t>(old);
    for (std::size_t p = 0; p < old_parts; ++p) shared[fresh * old_parts + p] = 0;
    for (std::size_t p = 0; p < base_.size(); ++p) shared[p * old_parts + old] = 0;
  }
}

bool DecodeSubBatches::Pays(std::uint64_t launch_cells, std::uint64_t tokens,
                            std::uint64_t moved_cells) const {
  const auto cost_of = [](const Sizes& sizes) {
    std::uint64_t cells = 0;
    for (const PartSize& size : sizes) cells += size.Cost();
    return cells;
  };
  std::uint64_t kept = cost_of(sizes_);
  std::uint64_t fresh = cost_of(fresh_sizes_);
  const bool rule_asks = rule_.objective == SplitObjective::kSparsity &&
                         !WithinSparsity(kept - tokens, tokens, rule_.max_sparsity_ppm) &&
                         WithinSparsity(fresh - tokens, tokens, rule_.max_sparsity_ppm);
  if (!rule_asks) {
    kept += sizes_.size() * launch_cells;
    fresh += fresh_sizes_.size() * launch_cells;
  }
  return kept > fresh && (kept - fresh) * kResplitSteps > moved_cells * kMoveCells;
}

void DecodeSubBatches::TakeFresh() {
  for (std::size_t i = 0; i < fresh_.size(); ++i) {
    moved_[i] = carried_[i] == kNone || base_[fresh_[i]] != carried_[i];
  }
  std::swap(part_, fresh_);
  std::swap(sizes_, fresh_sizes_);
}

void DecodeSubBatches::AddGroups(std::span<const DecodeRow> rows,
                                 std::vector<SegmentGroup>& groups) const {
  const std::size_t first = groups.size();
  groups.resize(first + sizes_.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    SegmentGroup& group = groups[first + part_[i]];
    if (rows[i].segment != DecodeRow::kNoSegment) group.segments.push_back(rows[i].segment);
    if (cells_ > 0) group.rows.push_back(rows[i].slot);
  }
  for (std::size_t p = 0; cells_ > 0 && p < sizes_.size(); ++p) {
    groups[first + p].width = static_cast<std::uint32_t>(sizes_[p].longest);
  }
}

}  // namespace penstock::scheduler
