#include "shard/executor/kv_layout.h"

#include <algorithm>

#include "shard/model/features.h"
#include "shard/model/kv_groups.h"

namespace penstock::shard {
namespace {

// Cells in a warm-up. Beyond it costs are proportional.
constexpr std::uint32_t kMaxWarmupCells = 65'536;

class PaddedCachePlan final : public CachePlan {
 public:
  PaddedCachePlan(const PagedLayout& layout, const RowLimits& rows)
      : CachePlan(layout), rows_(rows) {}

  // A padded KV row for each sequence, and a third of that in blocks: SplitPool gives blocks a
  // quarter of the whole.
  std::uint64_t WantedBytes(const v1::Limits& limits) const override {
    const std::uint64_t blocks =
        std::uint64_t{limits.max_sequences()} * layout_.BlocksFor(limits.max_sequence_length());
    return CellBytes(layout_, rows_, blocks * layout_.block_size) * 4 / 3;
  }

  absl::StatusOr<PoolSize> Fit(std::uint64_t bytes, const v1::Limits& limits) const override {
    const PoolSplit split = SplitPool(layout_, rows_, bytes, limits.max_sequence_length());
    if (split.blocks == 0) return NoBlockFits(bytes);
    return PoolSize{split.blocks, split.cells, 0};
  }

  std::uint32_t LongestSequence(const PoolSize&, const v1::Limits& limits) const override {
    return limits.max_sequence_length();
  }

  std::uint64_t Bytes(const PoolSize& pool) const override {
    return layout_.Bytes(pool.blocks) + CellBytes(layout_, rows_, pool.cells);
  }

  std::string Describe(const PoolSize& pool) const override {
    return BlocksText(pool) + " for prompts and " + std::to_string(pool.cells) +
           " cells for rows (" + HumanBytes(CellBytes(layout_, rows_, pool.cells)) + "), " +
           HumanBytes(Bytes(pool));
  }

 private:
  const RowLimits rows_;
};

}  // namespace

std::unique_ptr<CachePlan> KvLayout::Plan(const PagedLayout& layout, const StatePlan& states,
                                          std::uint32_t window, const RowLimits&) const {
  return std::make_unique<CachePlan>(layout, states, window);
}

void KvLayout::LimitWarmup(const PoolSize& pool, WarmupShape& shape) const {
  shape.pool_tokens = std::uint64_t{pool.blocks[0]} * shape.block_size;
}

absl::Status PaddedLayout::Check(const Model& model) const {
  if (model.pooling) {
    return absl::UnimplementedError("`kv-layout` must be paged with a model that gives vectors");
  }
  return CheckFeature(Feature::kPaddedLayout, model.spec.model_type, model.program);
}

// A padded KV row holds every position.
void PaddedLayout::Adapt(Program& program) const { JoinKvGroups(program); }

std::unique_ptr<CachePlan> PaddedLayout::Plan(const PagedLayout& layout, const StatePlan&,
                                              std::uint32_t, const RowLimits& rows) const {
  return std::make_unique<PaddedCachePlan>(layout, rows);
}

void PaddedLayout::LimitWarmup(const PoolSize& pool, WarmupShape& shape) const {
  shape.cells = std::min(pool.cells, kMaxWarmupCells);
  shape.max_sequences = std::min(shape.max_sequences, shape.cells);
  shape.pool_tokens = shape.cells;
}

}  // namespace penstock::shard
