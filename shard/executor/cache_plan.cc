#include "shard/executor/cache_plan.h"

#include <algorithm>

#include "shard/cache/padded/pool_split.h"
#include "shard/executor/memory_plan.h"

namespace penstock::shard {

std::uint64_t CachePlan::WantedBytes(const GroupLimits& limits) const {
  const std::uint64_t blocks =
      std::uint64_t{limits.max_sequences} * layout_.BlocksFor(limits.max_sequence_length);
  if (!padded_) return blocks * layout_.BytesPerBlock();
  // A padded KV row for each sequence, and a third of that in blocks: SplitPool gives blocks a
  // quarter of the whole.
  return blocks * CellBytes(layout_) * layout_.block_size * 4 / 3;
}

absl::StatusOr<PoolSize> CachePlan::Fit(std::uint64_t bytes, const GroupLimits& limits) const {
  PoolSize pool{layout_.BlocksIn(bytes), 0};
  if (padded_) {
    const PoolSplit split = SplitPool(layout_, bytes, limits.max_sequence_length);
    pool = {split.blocks, split.cells};
  }
  if (pool.blocks > 0) return pool;
  return absl::ResourceExhaustedError("`kv-cache-memory` must be at least one block of " +
                                      HumanBytes(layout_.BytesPerBlock()) +
                                      ". Given: " + HumanBytes(bytes));
}

std::uint32_t CachePlan::LongestSequence(const PoolSize& pool, const GroupLimits& limits) const {
  if (padded_) return limits.max_sequence_length;
  const std::uint64_t tokens = std::uint64_t{pool.blocks} * layout_.block_size;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(limits.max_sequence_length, tokens));
}

std::uint64_t CachePlan::Bytes(const PoolSize& pool) const {
  return layout_.Bytes(pool.blocks) + CellBytes(layout_) * pool.cells;
}

std::string CachePlan::Describe(const PoolSize& pool) const {
  std::string text =
      std::to_string(pool.blocks) + " blocks of " + std::to_string(layout_.block_size) + " tokens";
  if (padded_) {
    text += " for prompts and " + std::to_string(pool.cells) + " cells for rows (" +
            HumanBytes(CellBytes(layout_) * pool.cells) + ", scratch of " +
            HumanBytes(CellScratchBytes(layout_) * pool.cells) + " included)";
  }
  return text + ", " + HumanBytes(Bytes(pool));
}

}  // namespace penstock::shard
