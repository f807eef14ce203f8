// The positions of the rows of a batch, and for each KV group their cells in the cache and the
// block tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/cache/kv_cache.h"
#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

// In place of the index of a logit row: the logits of the row are not wanted.
inline constexpr std::uint32_t kNotSelected = UINT32_MAX;

// A segment of candidates as later calls need it.
struct CandidateSegment {
  std::uint32_t segment = 0;  // index in the batch
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t selected = 0;  // index of its logit row
  std::uint32_t context = 0;   // positions before
};

struct RowPlace {
  std::uint32_t position;
  bool last;               // of its segment, or a candidate
  bool paired;             // a candidate whose cell begins with a copy of the position before
  std::uint32_t part = 0;  // of a pair of texts
};

// The rows and segments of a batch in one KV group.
class GroupPlaces {
 public:
  // Where K and V of the row go.
  const CachePlace& Cell(std::size_t row) const { return cells_[row]; }
  const CachePlace* Cells() const { return cells_.data(); }
  // The position before that of a paired row.
  const CachePlace& Before(std::size_t row) const { return before_[row]; }
  // The block tables of all segments, one after the other, and where each begins.
  const std::uint32_t* Tables() const { return tables_.data(); }
  const std::size_t* TableStarts() const { return table_starts_.data(); }
  const std::uint32_t* Table(std::size_t segment) const {
    return tables_.data() + table_starts_[segment];
  }

 private:
  friend class RowPlaces;
  std::vector<CachePlace> cells_;
  std::vector<CachePlace> before_;
  std::vector<std::uint32_t> tables_;
  std::vector<std::size_t> table_starts_;
};

class RowPlaces {
 public:
  // `pack` as in CellKernels. The cache outlives it.
  RowPlaces(const KvCache& cache, std::size_t pack, std::uint32_t block_size)
      : cache_(cache), pack_(static_cast<std::uint32_t>(pack)), block_size_(block_size) {}

  void Fill(const RaggedBatch& batch);

  const RowPlace& Row(std::size_t row) const { return rows_[row]; }
  const GroupPlaces& Of(std::uint32_t kv_group) const { return groups_[kv_group]; }
  // The row's index among the logit rows, or kNotSelected.
  std::uint32_t Selected(std::size_t row) const { return selected_[row]; }
  const std::vector<CandidateSegment>& candidates() const { return candidates_; }

 private:
  void FillRows(const RaggedBatch& batch);
  void FillGroup(const RaggedBatch& batch, std::uint32_t kv_group);
  void AddCandidates(const RaggedSegment& segment, std::uint32_t index);

  const KvCache& cache_;
  const std::uint32_t pack_;
  const std::uint32_t block_size_;
  std::vector<RowPlace> rows_;
  std::vector<std::uint32_t> selected_;
  std::array<GroupPlaces, kMostKvGroups> groups_;
  std::vector<CandidateSegment> candidates_;
};

}  // namespace penstock::shard::cpu
