// The cells that a thread's share of an attention stage will read, in that order, a partition's
// worth of positions ahead of those it computes: what to ask of the memory meanwhile. However short
// a partition is, no other is met unasked for because of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shard/backend/cpu/attention/attention_plan.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/cache/kv_cache.h"

namespace penstock::shard::cpu {

class CellsAhead {
 public:
  // Of one layer; [begin, end) of the plan's list. All outlive it.
  CellsAhead(const AttentionPlan& plan, const KvCache& cache, std::size_t layer,
             const std::uint32_t* tables, const std::size_t* table_starts, AttentionCursor begin,
             AttentionCursor end);

  // What to ask for while the next partition is computed; valid until the call after.
  std::span<const CellRun> Enter();

 private:
  static constexpr std::size_t kMostRuns = 6;

  bool AtEnd(const AttentionCursor& at) const;
  CellRun CellsOf(const AttentionCursor& at) const;
  void Advance(AttentionCursor& at) const;
  // Moves up to `most` blocks on; the blocks.
  CellRun Take(std::size_t most);

  const AttentionPlan& plan_;
  const KvCache& cache_;
  const std::size_t layer_;
  const std::uint32_t* const tables_;
  const std::size_t* const table_starts_;
  const AttentionCursor end_;
  AttentionCursor computed_;  // is next
  AttentionCursor asked_;     // is next
  std::size_t asked_in_ = 0;  // blocks of that partition
  std::size_t blocks_computed_ = 0;
  std::size_t blocks_asked_ = 0;
  CellRun runs_[kMostRuns];
};

}  // namespace penstock::shard::cpu
