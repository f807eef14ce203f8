// Causal grouped-query attention of one segment over the paged cache.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/backend/reference/kv_store.h"

namespace penstock::shard {

struct AttentionShape {
  std::int64_t heads = 0;     // of this rank
  std::int64_t kv_heads = 0;  // divides heads
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  double scale = 1.0;
  std::int64_t window = 0;     // positions a query sees, itself included; 0 = all before it
  std::int64_t chunk = 0;      // of AttentionOp
  double softcap = 0.0;        // the same
  at::Tensor sinks;            // the same: float [heads], or undefined
  at::Tensor slopes;           // of Alibi: float [heads], or undefined
  double rounded_scale = 0.0;  // the same

  // The first position that a query sees.
  std::int64_t FirstVisible(std::int64_t position) const {
    const std::int64_t of_chunk = chunk == 0 ? 0 : position / chunk * chunk;
    const std::int64_t of_window = window == 0 ? 0 : position - window + 1;
    return std::max(of_chunk, of_window);
  }
  // The same for positions in a tensor.
  at::Tensor FirstVisible(const at::Tensor& positions) const;
};

// Query rows of one GEMM. After a long context they are fewer, so that the scores have at most
// kMaxScores floats or one row.
inline constexpr std::int64_t kQueryTile = 64;
inline constexpr std::int64_t kMaxScores = std::int64_t{1} << 20;

// Multiplies products of queries and keys by the scale and applies the softcap.
void FinishScores(const AttentionShape& shape, at::Tensor scores);
// Adds linear biases, if there are any. `heads`: what the slopes are viewed as. These and the
// positions of queries and keys broadcast to the scores.
void AddBiases(const AttentionShape& shape, at::IntArrayRef heads, const at::Tensor& queries,
               const at::Tensor& keys, at::Tensor scores);

// queries: [rows of the batch, heads * key_dim], out: [rows, heads * value_dim]; they may be views
// of wider buffers. K and V of the segment's own rows must be in the cache already. Softmax and
// sums are float32.
void SegmentAttention(const AttentionShape& shape, const KvStore& cache, std::uint32_t index,
                      const SegmentInputs& segment, const at::Tensor& queries, at::Tensor out);

// The same for candidates: each row sees the context, which is read once, and itself.
void CandidateAttention(const AttentionShape& shape, const KvStore& cache, std::uint32_t index,
                        const SegmentInputs& segment, const at::Tensor& queries, at::Tensor out);

}  // namespace penstock::shard
