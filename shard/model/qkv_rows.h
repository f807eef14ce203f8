// The rows of stored matrices that make the queries, keys and values of one rank, in the forms in
// which checkpoints fuse them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shard/model/buffers.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

// `rows` of a matrix whose stored shape is [stored_rows, hidden], `step` rows apart.
struct RowSlice {
  std::string name;
  std::uint64_t stored_rows = 0;
  Range rows;
  std::uint64_t step = 1;
};

class QkvRows {
 public:
  // The heads of all ranks and of this one, and its first ones. The first `interleaved` rows of a
  // query or key head are stored as pairs of neighbours; the slices put the first rows of all pairs
  // before the second ones, as RoPE here wants them.
  QkvRows(const HeadShape& all, const HeadShape& mine, std::uint32_t first_query_head,
          std::uint32_t first_kv_head, std::uint32_t interleaved)
      : all_(all),
        mine_(mine),
        first_query_head_(first_query_head),
        first_kv_head_(first_kv_head),
        interleaved_(interleaved) {}

  std::vector<RowSlice> Separate(const std::string& q, const std::string& k,
                                 const std::string& v) const;
  std::vector<RowSlice> Queries(const std::string& q) const;
  // All queries, all keys, all values.
  std::vector<RowSlice> Fused(const std::string& name) const;
  // For each K/V head its query heads, its key head, its value head.
  std::vector<RowSlice> ByHead(const std::string& name) const;
  // `blocks` equal blocks: some query heads, then their value heads, then their key heads.
  std::vector<RowSlice> ByBlock(const std::string& name, std::uint32_t blocks) const;
  // `q` holds for each query head its rows, then those of its gate. Without the gates.
  std::vector<RowSlice> BesideGates(const std::string& q, const std::string& k,
                                    const std::string& v) const;
  std::vector<RowSlice> Gates(const std::string& q) const;

 private:
  // A matrix, and the first row of each head in it.
  struct Source {
    std::string name;
    std::uint64_t stored_rows;
    std::function<std::uint64_t(std::uint64_t head)> row_of;
  };
  void AddQueries(const Source& source, std::vector<RowSlice>& slices) const;
  void AddKeys(const Source& source, std::vector<RowSlice>& slices) const;
  void AddValues(const Source& source, std::vector<RowSlice>& slices) const;
  std::vector<RowSlice> All(const Source& q, const Source& k, const Source& v) const;
  Source Plain(const std::string& name, std::uint64_t heads, std::uint64_t dim) const;

  const HeadShape all_, mine_;
  const std::uint64_t first_query_head_, first_kv_head_, interleaved_;
};

// Parts of a vector or matrix of the weights of one head: rows [first, first + dim) of the tensor,
// in the order of QkvRows with `interleaved` rows.
std::vector<RowSlice> HeadRows(const std::string& name, std::uint64_t stored_rows,
                               std::uint64_t first, std::uint64_t dim, std::uint64_t interleaved);

}  // namespace penstock::shard
