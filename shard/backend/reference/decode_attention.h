// Attention of one query per sequence. A sequence's result has the same bits in any batch, with any
// width of the tensors, and in the paged and the padded layout.
//
// For that, positions are cut into tiles of kDecodeTile from position 0, and every GEMM has the
// shape of one tile: libraries change last bits with the shape, not with the number of equal GEMMs.
// Tiles are added from left to right, and a tile of padding adds exactly zero.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/attention.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/backend/reference/kv_store.h"

namespace penstock::shard {

inline constexpr std::int64_t kDecodeTile = 64;

// K and V of some sequences, cut into tiles: positions are a multiple of kDecodeTile.
struct DecodeTiles {
  at::Tensor keys;                    // float32 [sequences, kv_heads, positions, key_dim]
  at::Tensor values;                  // the same with value_dim
  std::int64_t first = 0;             // position of the first, a multiple of kDecodeTile
  std::vector<std::int64_t> lengths;  // of the sequences: the query is at the last position
};

// Returns float32 [sequences, heads * value_dim] for q [sequences, heads, key_dim]. Positions that
// a query does not see may hold anything.
at::Tensor DecodeAttention(const AttentionShape& shape, const at::Tensor& q, DecodeTiles tiles);

// Queries of one part of the padded KV layout.
struct PartQueries {
  std::uint32_t part = 0;
  std::vector<std::int64_t> queries;  // rows of the batch
  std::vector<std::int64_t> rows;     // of the part
  std::vector<std::int64_t> lengths;
};

// Groups the segments that are one query of a padded KV row by part.
std::vector<PartQueries> CollectPartQueries(std::span<const SegmentInputs> segments,
                                            const CellLayout& layout);
inline bool IsPartQuery(const SegmentInputs& segment) {
  return segment.row.has_value() && segment.query_count == 1 && !segment.candidates();
}

// queries, out: as in SegmentAttention.
void PartAttention(const AttentionShape& shape, const KvStore& cache, std::uint32_t index,
                   const PartQueries& part, const at::Tensor& queries, at::Tensor out);

}  // namespace penstock::shard
