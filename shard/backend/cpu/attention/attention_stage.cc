#include "shard/backend/cpu/attention/attention_stage.h"

#include <algorithm>
#include <cmath>

namespace penstock::shard::cpu {

AttentionTile AttentionStage::TileOf(std::size_t item) const {
  const TokenTile& token_tile = parts_.plan.Tile(item);
  const AttentionShape& shape = parts_.plan.shape();
  const std::size_t head = parts_.plan.Head(item);
  AttentionTile tile;
  tile.cache = parts_.cache.Head(parts_.op.cache, head);
  tile.blocks = parts_.tables + parts_.table_starts[token_tile.segment];
  tile.queries =
      parts_.queries.Floats(token_tile.row) + head * shape.group * parts_.op.heads.key_dim;
  tile.query_stride = parts_.queries.stride;
  tile.tokens = token_tile.tokens;
  tile.group = shape.group;
  tile.position = token_tile.position;
  tile.window = shape.window;
  tile.chunk = shape.chunk;
  if (shape.both_ways) tile.end = token_tile.end;
  tile.scale = parts_.op.scale;
  tile.softcap = parts_.op.softcap;
  const Alibi& alibi = parts_.op.alibi;
  if (!alibi.slopes.empty()) tile.slopes = alibi.slopes.data() + head * shape.group;
  tile.rounded_scale = alibi.rounded_scale;
  if (token_tile.candidates) tile.own = parts_.cells + token_tile.row;
  return tile;
}

void AttentionStage::Run(std::size_t thread) {
  const AttentionPlan& plan = parts_.plan;
  ThreadScratch& scratch = parts_.buffers.Thread(thread);
  const AttentionCursor begin = plan.Begin(thread);
  const AttentionCursor end = plan.Begin(thread + 1);
  KvPrefetch prefetch(plan, parts_.cache, parts_.op.cache, parts_.tables, parts_.table_starts,
                      begin, end);
  for (std::size_t item = begin.item; item < end.item || (item == end.item && end.partition > 0);
       ++item) {
    const TokenTile& tile = plan.Tile(item);
    const std::size_t first = item == begin.item ? begin.partition : 0;
    const std::size_t stop =
        item == end.item ? end.partition : tile.end_partition - tile.first_partition;
    if (first < stop) AttendItem(item, first, stop, prefetch, scratch);
  }
  if (plan.splits().empty()) return;
  parts_.pool.Barrier();
  for (std::size_t i = thread; i < plan.splits().size(); i += parts_.pool.threads()) {
    MergeItem(plan.splits()[i], scratch);
  }
}

void AttentionStage::AttendItem(std::size_t item, std::size_t first, std::size_t end,
                                KvPrefetch& prefetch, ThreadScratch& scratch) {
  AttentionTile tile = TileOf(item);
  const std::size_t origin = parts_.plan.Tile(item).first_partition;
  const SplitItem* split = parts_.plan.FindSplit(item);
  parts_.cell_kernels.load_queries(tile, scratch.attention);
  for (std::size_t p = first; p < end; ++p) {
    tile.prefetch = prefetch.Next();
    const AttentionState& alone = p == first ? scratch.total : scratch.partition;
    const AttentionState state =
        split != nullptr ? parts_.buffers.Slot(split->first_slot + p) : alone;
    parts_.cell_kernels.attend(tile, origin + p, scratch.attention, state);
    if (split != nullptr || p == first) continue;
    parts_.kernels.merge(tile.Rows(), parts_.op.heads.value_dim, state, scratch.total);
  }
  if (split == nullptr) FinishItem(item, tile, scratch.total);
}

void AttentionStage::MergeItem(const SplitItem& split, ThreadScratch& scratch) {
  const AttentionTile tile = TileOf(split.item);
  const TokenTile& token_tile = parts_.plan.Tile(split.item);
  std::fill_n(scratch.total.maximum, tile.Rows(), -__builtin_huge_valf());
  for (std::size_t p = 0; p < token_tile.end_partition - token_tile.first_partition; ++p) {
    parts_.kernels.merge(tile.Rows(), parts_.op.heads.value_dim,
                         parts_.buffers.Slot(split.first_slot + p), scratch.total);
  }
  FinishItem(split.item, tile, scratch.total);
}

void AttentionStage::FinishItem(std::size_t item, const AttentionTile& tile,
                                const AttentionState& state) {
  if (parts_.sinks != nullptr) {
    AddSinks(parts_.sinks + parts_.plan.Head(item) * tile.group, tile, state);
  }
  const BufferView& out = parts_.out;
  std::byte* to = out.Row(parts_.plan.Tile(item).row) +
                  parts_.plan.Head(item) * tile.group * parts_.op.heads.value_dim * out.element;
  parts_.kernels.finish(tile, state, to, out.stride);
}

// A sink far above all scores makes the sum infinite, and so the result zero.
void AttentionStage::AddSinks(const float* sinks, const AttentionTile& tile,
                              const AttentionState& state) const {
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    state.sum[row] += std::exp(sinks[row % tile.group] - state.maximum[row]);
  }
}

}  // namespace penstock::shard::cpu
