// The computing routines of one instruction set and one weight type, behind plain function
// pointers: only their definitions (kernels/) are compiled for that instruction set.
//
// Determinism, the rule that all of them keep: what is computed for a row depends on that row
// alone. Every output of a matrix product is one chain of fused multiply-adds over K in ascending
// order; every sum over a vector has a fixed shape; attention is computed in partitions of 256
// positions from position 0, each softmaxed alone, merged from left to right. So bits do not depend
// on the number of rows, the split of a prompt into chunks, or the threads.
//
// Types: weights and K/V are float32, bfloat16 or int8 (below; norms and embeddings never int8);
// weights of bfloat16 may be kept as 16-bit integers (below).
// `activation` is what products read: bfloat16 where the instruction set multiplies bfloat16 pairs,
// float32 elsewhere (bfloat16 weights are then widened, and activations stay unrounded). Everything
// else is float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/dtype.h"
#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/isa.h"
#include "shard/cache/paged/kv_type.h"

namespace penstock::shard::cpu {

inline constexpr std::size_t kPartition = 256;     // positions that are softmaxed together
inline constexpr std::size_t kTileRows = 24;       // most query rows of more than one token

// How weights are stored for a kernel: vectors of `lanes` columns, of which
// `panel_vectors` make a panel, `pack` consecutive K together.
struct Layout {
  std::size_t lanes = 16;
  std::size_t panel_vectors = 2;
  std::size_t pack = 1;
  std::size_t PanelColumns() const { return lanes * panel_vectors; }
};

struct NormArgs {
  float* input = nullptr;      // [size], multiple of lanes readable
  const float* add = nullptr;  // joins input first; or null
  const float* weight = nullptr;
  const float* bias = nullptr;  // of LayerNorm
  std::size_t size = 0;
  float eps = 0;
  void* out = nullptr;
};

// K and V of one head of one layer. Block b begins at `base` + b * `block_bytes`. Inside, K is
// [head_dim / pack][block_size][pack] (lanes are positions), V [block_size / pack][head_dim][pack]
// (lanes are dimensions). Behind each of the two, when they are int8, float32 [block_size]: a
// position is its integers times this scale.
struct HeadCache {
  std::byte* base = nullptr;
  std::size_t block_bytes = 0;
  std::size_t value_offset = 0;  // of V from K
  std::size_t block_size = 0;
  std::size_t head_dim = 0;
};

// A position of the cache.
struct CachePlace {
  std::uint32_t block = 0;
  std::uint32_t offset = 0;  // in the block
};

// Blocks of one head that follow each other in a sequence.
struct CellRun {
  const std::byte* base = nullptr;  // of the head
  const std::uint32_t* blocks = nullptr;
  std::size_t count = 0;
};

// Query rows of one sequence that share a K/V head: `tokens` x `group` rows.
struct AttentionTile {
  HeadCache cache;
  const std::uint32_t* blocks = nullptr;
  const float* queries = nullptr;  // of the first token and head; heads follow each other
  std::size_t query_stride = 0;    // floats from token to token
  std::size_t tokens = 0;
  std::size_t group = 1;
  std::size_t position = 0;  // of the first token
  std::size_t window = 0;    // 0 = all
  float scale = 1.0f;
  // Where the tokens' own K and V are when they are candidates for one position, `position`; null:
  // they are consecutive positions. The first of a pair of positions lies beside each of the
  // second.
  const CachePlace* own = nullptr;
  // What to ask the memory for while this is computed, `block_bytes` long each. A hint.
  std::span<const CellRun> ahead;
  std::size_t Rows() const { return tokens * group; }
};

// Rows against positions [first, end) of a cache that holds keys only.
struct SimilarityArgs {
  HeadCache plane;
  const std::uint32_t* blocks = nullptr;
  const void* rows = nullptr;  // activations [count, stride]
  std::size_t stride = 0;
  std::size_t count = 0;
  std::size_t first = 0;  // of a block
  std::size_t end = 0;
  float* scratch = nullptr;  // [kRowTile, kScoreStride]
  float* largest = nullptr;  // [count]: the largest product of each row; joins what is there
};

// Unnormalised result of a tile over some partitions: per row the maximum, the sum of exponents and
// the weighted values. `floats` is [rows * (2 + value_stride)].
struct AttentionState {
  float* maximum = nullptr;
  float* sum = nullptr;
  float* values = nullptr;
  std::size_t value_stride = 0;
};

// Strides are fixed, so that the rows of a register tile are addressed by constants; odd multiples
// of a line keep rows out of each other's sets of the first cache.
inline constexpr std::size_t kScoreStride = kPartition + 48;
inline constexpr std::size_t kMostHeadDim = 512;
inline constexpr std::size_t kQueryStride = kMostHeadDim + 16;

struct AttentionScratch {
  void* queries = nullptr;        // [rows, kQueryStride], filled by load_queries
  float* scores = nullptr;        // [rows, kScoreStride]
  void* probabilities = nullptr;  // [rows, kScoreStride]
};

// What reads and writes the cells of a cache. Queries and probabilities, which only these see, are
// float32 or, where the cells are multiplied in pairs of bfloat16, bfloat16.
struct CellKernels {
  std::size_t pack = 1;  // positions that lie together: block sizes must be multiples
  // `clear_partner`: the position after this one holds nothing yet (it may share a pair).
  void (*write_kv)(const HeadCache& cache, std::uint32_t block, std::size_t offset, const float* k,
                   const float* v, bool clear_partner);
  // A copy of a position; what shares a pair with its first holds nothing then.
  void (*copy_kv)(const HeadCache& cache, const CachePlace& from, const CachePlace& to);
  void (*load_queries)(const AttentionTile& tile, AttentionScratch& scratch);
  // Partition `index` alone into `state`.
  void (*attend)(const AttentionTile& tile, std::size_t index, AttentionScratch& scratch,
                 const AttentionState& state);
};

struct Kernels {
  Isa isa = Isa::kAvx2;
  DType weight = DType::kFloat32;
  DType activation = DType::kFloat32;
  Layout layout;

  FormatTable formats;  // GEMMs, which read `activation`
  void (*norm)(const NormArgs& args);             // RMSNorm to activations
  void (*head_norm)(const NormArgs& args);        // RMSNorm to float32, in place is fine
  void (*layer_norm)(const NormArgs& args);       // LayerNorm to activations
  void (*wide_layer_norm)(const NormArgs& args);  // LayerNorm to float32, in place is fine
  // Rotates the pairs (i, i + half) of one head.
  void (*rope)(float* head, const float* cosine, const float* sine, std::size_t half);
  CellKernels float32_cells;
  CellKernels bfloat16_cells;
  CellKernels int8_cells;
  // A key in a cache that holds keys only, in an order of its own.
  void (*write_key)(const HeadCache& cache, const CachePlace& to, const float* k);
  void (*copy_key)(const HeadCache& cache, const CachePlace& from, const CachePlace& to);
  // Scales the row to length 1, and writes it as activations where `out` is given.
  void (*unit_vector)(float* row, std::size_t size, void* out);
  void (*similarity)(const SimilarityArgs& args);
  // `right` joins `left`, which covers the partitions before it.
  void (*merge)(std::size_t rows, std::size_t head_dim, const AttentionState& right,
                const AttentionState& left);
  // Divides by the sums, into activations: out[token * out_stride + head * head_dim].
  void (*finish)(const AttentionTile& tile, const AttentionState& state, void* out,
                 std::size_t out_stride);
};

// Of a cache of that type; auto is that of the weights.
inline const CellKernels& CellsOf(const Kernels& kernels, KvType type) {
  if (type == KvType::kInt8) return kernels.int8_cells;
  const bool wide =
      type == KvType::kFloat32 || (type == KvType::kAuto && kernels.weight == DType::kFloat32);
  return wide ? kernels.float32_cells : kernels.bfloat16_cells;
}

// Kernels for float32 or bfloat16 weights; null for other types.
const Kernels* FindKernels(Isa isa, DType weight);

}  // namespace penstock::shard::cpu
