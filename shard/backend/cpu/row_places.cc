#include "shard/backend/cpu/row_places.h"

namespace penstock::shard::cpu {

void RowPlaces::Fill(const RaggedBatch& batch) {
  rows_.clear();
  cells_.clear();
  tables_.clear();
  table_starts_.clear();
  candidates_.clear();
  selected_.assign(batch.tokens.size(), kNotSelected);
  for (std::uint32_t i = 0; i < batch.logit_rows.size(); ++i) selected_[batch.logit_rows[i]] = i;
  std::uint32_t candidate_rows = 0;
  for (const RaggedSegment& segment : batch.segments) {
    table_starts_.push_back(tables_.size());
    for (BlockId block : segment.blocks) tables_.push_back(block.value());
    if (segment.candidates) {
      AddCandidates(segment, candidate_rows);
      continue;
    }
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      const std::uint32_t position = segment.context_length + i;
      rows_.push_back({position, i + 1 == segment.query_count, false, {}});
      cells_.push_back({segment.blocks[position / block_size_].value(), position % block_size_});
    }
  }
}

// A candidate's cell is a whole pair of positions where positions are paired (CellKernels::pack),
// so that the pair looks as it will in the sequence's own block.
void RowPlaces::AddCandidates(const RaggedSegment& segment, std::uint32_t& candidate_rows) {
  const std::uint32_t position = segment.context_length;
  const std::uint32_t within = position % pack_;
  CachePlace before;
  if (within > 0) {
    before = {segment.blocks[(position - 1) / block_size_].value(), (position - 1) % block_size_};
  }
  candidates_.push_back({static_cast<std::uint32_t>(table_starts_.size() - 1), segment.query_start,
                         segment.query_count, selected_[segment.query_start], position});
  for (std::uint32_t i = 0; i < segment.query_count; ++i) {
    const std::uint32_t cell = candidate_rows++ * pack_ + within;
    rows_.push_back({position, true, within > 0, before});
    cells_.push_back({cache_.blocks() + cell / block_size_, cell % block_size_});
  }
}

}  // namespace penstock::shard::cpu
