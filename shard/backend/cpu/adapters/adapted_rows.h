// Which rows of a step have an adapter, and what their adapters add to a product.
//
// For each row with an adapter the threads first share the products with `down`. After a barrier,
// a thread that computes columns of the base product first computes what joins them. So the rows of
// all adapters and of the plain model are in one product with the base weights.
//
// Threading: Fill by the caller's thread; the rest by the threads of the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/adapters/cpu_adapter.h"
#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {

// Adapters by row; null: none. Empty if no row has any.
using RowAdapters = std::span<const CpuAdapter* const>;

class AdaptedRows {
 public:
  void Fill(const RaggedBatch& batch);

  RowAdapters rows() const { return active_.empty() ? RowAdapters() : RowAdapters(rows_); }
  // The adapters of logit rows [first, first + count).
  RowAdapters Selected(std::size_t first, std::size_t count) const {
    return active_.empty() ? RowAdapters() : RowAdapters(selected_).subspan(first, count);
  }
  // Whether an adapter of the batch changes this matrix.
  bool Change(WeightIndex matrix) const;

 private:
  std::vector<const CpuAdapter*> rows_;
  std::vector<const CpuAdapter*> selected_;
  std::vector<const CpuAdapter*> active_;  // the distinct ones
};

// Packed vectors of which a thread computes the additions at once.
inline constexpr std::size_t kAddedVectors = 4;

// The additions to one product.
struct AdapterProduct {
  WeightIndex matrix = kNoWeight;
  RowAdapters adapters;  // of the rows
  float* low = nullptr;  // [rows, kMostTargetRanks]: products with `down`

  // One thread's share of the products with `down`. `input`: rows of activations.
  void Down(const GemmArgs& whole, std::size_t element, std::size_t threads,
            std::size_t thread) const;
  // Sets `added` for `args.rows` rows from `first_row` on, with sums in `sums`, which has
  // kAddedVectors vectors for each row. At most kAddedVectors vectors.
  void Up(const GemmArgs& args, std::size_t first_row, std::size_t lanes, float* sums,
          const float** added) const;
};

}  // namespace penstock::shard::cpu
