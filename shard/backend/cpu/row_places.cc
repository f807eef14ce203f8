#include "shard/backend/cpu/row_places.h"

namespace penstock::shard::cpu {

void RowPlaces::Fill(const RaggedBatch& batch) {
  selected_.assign(batch.tokens.size(), kNotSelected);
  for (std::uint32_t i = 0; i < batch.logit_rows.size(); ++i) selected_[batch.logit_rows[i]] = i;
  FillRows(batch);
  for (std::uint32_t group = 0; group < cache_.kv_groups(); ++group) FillGroup(batch, group);
}

void RowPlaces::FillRows(const RaggedBatch& batch) {
  rows_.clear();
  candidates_.clear();
  for (std::uint32_t s = 0; s < batch.segments.size(); ++s) {
    const RaggedSegment& segment = batch.segments[s];
    if (segment.candidates) {
      AddCandidates(segment, s);
      continue;
    }
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      const std::uint32_t position = segment.context_length + i;
      const std::uint32_t part = i >= segment.first_part ? 1 : 0;
      rows_.push_back({position, i + 1 == segment.query_count, false, part});
    }
  }
}

void RowPlaces::AddCandidates(const RaggedSegment& segment, std::uint32_t index) {
  const std::uint32_t position = segment.context_length;
  candidates_.push_back(
      {index, segment.query_start, segment.query_count, selected_[segment.query_start], position});
  rows_.insert(rows_.end(), segment.query_count, RowPlace{position, true, position % pack_ > 0});
}

// A candidate's cell is a whole pair of positions where positions are paired (CellKernels::pack),
// so that the pair looks as it will in the sequence's own block.
void RowPlaces::FillGroup(const RaggedBatch& batch, std::uint32_t kv_group) {
  GroupPlaces& places = groups_[kv_group];
  places.cells_.clear();
  places.before_.assign(candidates_.empty() ? 0 : rows_.size(), {});
  places.tables_.clear();
  places.table_starts_.clear();
  std::uint32_t candidate_rows = 0;
  for (const RaggedSegment& segment : batch.segments) {
    const std::span<const BlockId> table = segment.Table(kv_group);
    places.table_starts_.push_back(places.tables_.size());
    for (const BlockId block : table) places.tables_.push_back(block.value());
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      const std::uint32_t row = segment.query_start + i;
      const std::uint32_t position = rows_[row].position;
      if (!segment.candidates) {
        places.cells_.push_back({table[position / block_size_].value(), position % block_size_});
        continue;
      }
      const std::uint32_t cell = candidate_rows++ * pack_ + position % pack_;
      places.cells_.push_back({cache_.blocks()[kv_group] + cell / block_size_, cell % block_size_});
      if (!rows_[row].paired) continue;
      const std::uint32_t before = position - 1;
      places.before_[row] = {table[before / block_size_].value(), before % block_size_};
    }
  }
}

}  // namespace penstock::shard::cpu
