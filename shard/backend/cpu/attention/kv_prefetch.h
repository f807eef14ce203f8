// Plans the prefetch of K/V for a thread's share of an attention stage. While a partition is
// computed, the blocks of the next kPartition positions are prefetched, in the order in which the
// thread will read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shard/backend/cpu/attention/attention_plan.h"
#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

class KvPrefetch {
 public:
  // For one cache and the part [begin, end) of the plan's list. The arguments outlive it.
  KvPrefetch(const AttentionPlan& plan, const KvCache& cache, std::size_t index,
             const std::uint32_t* tables, const std::size_t* table_starts, AttentionCursor begin,
             AttentionCursor end);

  // Moves on by a partition. Returns the blocks to prefetch while that partition is computed; valid
  // until the next call.
  std::span<const BlockRun> Next();

 private:
  static constexpr std::size_t kMostRuns = 6;

  bool AtEnd(const AttentionCursor& at) const;
  BlockRun CellsOf(const AttentionCursor& at) const;
  void Advance(AttentionCursor& at) const;
  // The next blocks to prefetch, at most `most`.
  BlockRun Take(std::size_t most);

  const AttentionPlan& plan_;
  const KvCache& cache_;
  const std::size_t index_;  // of the layer's cache
  const std::uint32_t* const tables_;
  const std::size_t* const table_starts_;
  const AttentionCursor end_;
  AttentionCursor computed_;             // the next partition to compute
  AttentionCursor requested_;            // the partition to prefetch from next
  std::size_t blocks_in_partition_ = 0;  // how many blocks of it are prefetched
  std::size_t blocks_computed_ = 0;
  std::size_t blocks_requested_ = 0;
  BlockRun runs_[kMostRuns];
};

}  // namespace penstock::shard::cpu
