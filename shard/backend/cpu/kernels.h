// The routines of one instruction set and one type of weights, as plain function pointers. Only
// their definitions (kernels/) are compiled for that instruction set.
//
// Determinism: the result of a row depends on that row alone. Every sum over a vector has a fixed
// shape. Attention is computed in partitions of 256 positions from position 0; each has its own
// softmax, and they are merged from left to right. format_kernels.h says the same of GEMMs. So bits
// do not depend on the number of rows, the chunks of a prompt, or the threads.
//
// Types: weights are float32 or bfloat16, K/V also int8. `activation` is what GEMMs read: bfloat16
// where the instruction set multiplies bfloat16 pairs, float32 elsewhere. All other values are
// float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/dtype.h"
#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/isa.h"
#include "shard/cache/paged/kv_type.h"

namespace penstock::shard::cpu {

inline constexpr std::size_t kPartition = 256;  // positions with one softmax
inline constexpr std::size_t kTileRows = 24;    // most query rows of more than one token

// How plain weights are stored: `panel_vectors` vectors of columns make a panel, and `pack`
// elements of K lie together.
struct Layout {
  std::size_t lanes = 16;
  std::size_t panel_vectors = 2;
  std::size_t pack = 1;
  std::size_t PanelColumns() const { return lanes * panel_vectors; }
};

struct NormArgs {
  float* input = nullptr;      // [size], multiple of lanes readable
  const float* add = nullptr;  // added to input first, times add_scale; or null
  float add_scale = 1.0f;
  const float* weight = nullptr;  // null = ones
  const float* bias = nullptr;    // of LayerNorm; null = zeros
  std::size_t size = 0;
  float eps = 0;
  void* out = nullptr;
};

// A causal depthwise convolution of one row, then SiLU.
inline constexpr std::size_t kMostInputs = 16;  // of a channel
struct ConvolutionArgs {
  const float* inputs[kMostInputs] = {};  // the oldest first
  const float* weights = nullptr;         // [taps, weight_stride]
  std::size_t weight_stride = 0;
  std::size_t taps = 0;
  std::size_t size = 0;  // channels
  float* out = nullptr;
};

// The delta rule (DeltaNetOp) of one head for consecutive rows of a sequence, over a block of
// columns of its state. Results replace the values.
inline constexpr std::size_t kDeltaColumns = 32;
struct DeltaArgs {
  float* state = nullptr;  // [key_dim, kDeltaColumns]
  const float* query = nullptr;
  const float* key = nullptr;
  float* value = nullptr;
  std::size_t stride = 0;  // floats from row to row of the three
  const float* decay = nullptr;
  const float* beta = nullptr;
  std::size_t gate_stride = 0;  // of decay and beta
  std::size_t rows = 0;
  std::size_t key_dim = 0;
  std::size_t columns = 0;  // of values; those after them in the state are zero
};

// RMSNorm of one head times silu(gate).
struct GatedNormArgs {
  const float* input = nullptr;
  const float* gate = nullptr;
  const float* weight = nullptr;
  std::size_t size = 0;
  float eps = 0;
  void* out = nullptr;
};

// K and V of one head of one layer. Block b begins at `base` + b * `block_bytes`. In a block, K is
// [key_dim / pack][block_size][pack] (vectors of positions) and V is
// [block_size / pack][value_dim][pack] (vectors of dimensions). int8 K and V have a float32 scale
// for each position after them: [block_size]. Where V lies in K (CacheShape), a block is as in
// kernels/latent.h.
struct HeadCache {
  std::byte* base = nullptr;
  std::size_t block_bytes = 0;
  std::size_t value_offset = 0;  // of V from K
  std::size_t block_size = 0;
  std::size_t key_dim = 0;
  std::size_t value_dim = 0;  // 0 if the cache holds only keys
};

// A position in the cache.
struct CachePlace {
  std::uint32_t block = 0;
  std::uint32_t offset = 0;  // in the block
};

// Blocks of one head that follow each other in a sequence.
struct BlockRun {
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
  std::size_t chunk = 0;     // the same
  // For attention in both directions: the end of the positions that some token sees. 0: a token
  // sees none after it.
  std::size_t end = 0;
  float scale = 1.0f;
  float softcap = 0.0f;  // of AttentionOp
  // Of Alibi: the slopes of the group, or null.
  const float* slopes = nullptr;
  float rounded_scale = 0.0f;
  // Null if the tokens have consecutive positions. If they are candidates for one position,
  // `position`: where the K and V of each lie. If positions are paired, each candidate has a copy
  // of the first of the pair beside it.
  const CachePlace* own = nullptr;
  // Blocks to prefetch while this tile is computed.
  std::span<const BlockRun> prefetch;
  std::size_t Rows() const { return tokens * group; }
};

// Rows against the positions [first, end) of a cache that holds only keys.
struct SimilarityArgs {
  HeadCache plane;
  const std::uint32_t* blocks = nullptr;
  const void* rows = nullptr;  // activations [count, stride]
  std::size_t stride = 0;
  std::size_t count = 0;
  std::size_t first = 0;  // of a block
  std::size_t end = 0;
  float* scratch = nullptr;  // [kRowTile, kScoreStride]
  float* largest = nullptr;  // [count]: in, and out, the largest product of each row
};

// The unnormalised result of a tile over some partitions: for each row the maximum, the sum of
// exponentials and the weighted values. `floats` is [rows * (2 + value_stride)].
struct AttentionState {
  float* maximum = nullptr;
  float* sum = nullptr;
  float* values = nullptr;
  std::size_t value_stride = 0;
};

// Strides are constants, so that the rows of a register tile have constant offsets. Odd multiples
// of a line put rows in different sets of the first-level cache.
inline constexpr std::size_t kScoreStride = kPartition + 48;
inline constexpr std::size_t kMostHeadDim = 512;
inline constexpr std::size_t kQueryStride = kMostHeadDim + 16;
inline constexpr std::size_t kLatentPositions = 16;  // that are widened together; even

struct AttentionScratch {
  void* queries = nullptr;        // [rows, kQueryStride], filled by load_queries
  float* scores = nullptr;        // [rows, kScoreStride]
  void* probabilities = nullptr;  // [rows, kScoreStride]
  // For latents, whose queries are latent_stride floats apart.
  float* latents = nullptr;  // [kLatentPositions, latent_stride]
  std::size_t latent_stride = 0;
};

// The routines for one type of K/V. Queries and probabilities, which only these use, are bfloat16
// where K/V are multiplied in pairs of bfloat16, else float32.
struct CellKernels {
  std::size_t pack = 1;  // positions that lie together; the block size must be a multiple
  // `clear_partner`: clears the next position, which may share a pair with this one.
  void (*write_kv)(const HeadCache& cache, std::uint32_t block, std::size_t offset, const float* k,
                   const float* v, bool clear_partner);
  // Copies a position. The other position of a pair is cleared.
  void (*copy_kv)(const HeadCache& cache, const CachePlace& from, const CachePlace& to);
  void (*load_queries)(const AttentionTile& tile, AttentionScratch& scratch);
  // Partition `index` alone into `state`.
  void (*attend)(const AttentionTile& tile, std::size_t index, AttentionScratch& scratch,
                 const AttentionState& state);
};

// Products of one row with the rows [first, end) of the first matrix of a LoRA adapter.
struct LoraDownArgs {
  const void* input = nullptr;    // activations, zero up to `stride`
  const void* down = nullptr;     // [ranks, stride]
  std::size_t stride = 0;         // a multiple of 32
  const float* scales = nullptr;  // [ranks], which multiply the products
  std::size_t first = 0;
  std::size_t end = 0;
  float* out = nullptr;  // [ranks]
};

// Adds the products of those results with the second matrix to vectors of columns.
struct LoraUpArgs {
  const float* low = nullptr;  // [ranks]
  std::size_t ranks = 0;
  const void* up = nullptr;  // [vectors, ranks, lanes]
  std::size_t vectors = 0;
  std::size_t step = 1;  // vectors from one to the next in `out`
  float* out = nullptr;
};

// For adapters of one element type.
struct LoraKernels {
  void (*down)(const LoraDownArgs& args) = nullptr;
  void (*up)(const LoraUpArgs& args) = nullptr;
};

struct Kernels {
  Isa isa = Isa::kAvx2;
  DType weight = DType::kFloat32;
  DType activation = DType::kFloat32;
  Layout layout;

  FormatTable formats;                            // GEMMs, which read `activation`
  void (*norm)(const NormArgs& args);             // RMSNorm to activations
  void (*head_norm)(const NormArgs& args);        // RMSNorm to float32, in place is fine
  void (*layer_norm)(const NormArgs& args);       // LayerNorm to activations
  void (*wide_layer_norm)(const NormArgs& args);  // LayerNorm to float32, in place is fine
  void (*copy)(const NormArgs& args);             // no norm, to activations
  void (*wide_copy)(const NormArgs& args);        // no norm, to float32
  float (*sum_of_squares)(const float* x, std::size_t size);
  void (*scale_activations)(void* row, std::size_t size, float scale);
  void (*multiply_activations)(void* row, const float* by, std::size_t size);
  // Multiplies the row by `scale`; then a softcap as in ScaleLogitsOp.
  void (*scale_logits)(float* row, std::size_t size, float scale, float softcap);
  // Rotates the pairs (i, i + half) of one head.
  void (*rope)(float* head, const float* cosine, const float* sine, std::size_t half);
  CellKernels float32_cells;
  CellKernels bfloat16_cells;
  CellKernels int8_cells;
  // For caches whose V lies in K; write_kv reads no `v`.
  CellKernels float32_latents;
  CellKernels bfloat16_latents;
  CellKernels int8_latents;
  // Writes a key in a cache that holds only keys.
  void (*write_key)(const HeadCache& cache, const CachePlace& to, const float* k);
  void (*copy_key)(const HeadCache& cache, const CachePlace& from, const CachePlace& to);
  // Scales the row to length 1, and writes it as activations unless `out` is null.
  void (*unit_vector)(float* row, std::size_t size, void* out);
  void (*similarity)(const SimilarityArgs& args);
  // Merges `right` into `left`, which covers the partitions before it.
  void (*merge)(std::size_t rows, std::size_t value_dim, const AttentionState& right,
                const AttentionState& left);
  // Divides by the sums, into activations: out[token * out_stride + head * value_dim].
  void (*finish)(const AttentionTile& tile, const AttentionState& state, void* out,
                 std::size_t out_stride);
  void (*convolve)(const ConvolutionArgs& args);
  // Scales x to this length; 1e-6 joins the square of its own.
  void (*scale_to_length)(float* x, std::size_t size, float length);
  void (*delta_rule)(const DeltaArgs& args);
  void (*gated_norm)(const GatedNormArgs& args);  // to activations
  // Multiplies a row of activations by sigmoid(gate).
  void (*gate_activations)(void* row, const float* gate, std::size_t size);
  LoraKernels float32_lora;
  LoraKernels bfloat16_lora;
};

// For K/V of that type; auto is the type of the weights.
inline const CellKernels& CellsOf(const Kernels& kernels, KvType type) {
  if (type == KvType::kInt8) return kernels.int8_cells;
  const bool wide =
      type == KvType::kFloat32 || (type == KvType::kAuto && kernels.weight == DType::kFloat32);
  return wide ? kernels.float32_cells : kernels.bfloat16_cells;
}

// The same for caches whose V lies in K.
inline const CellKernels& LatentsOf(const Kernels& kernels, KvType type) {
  const CellKernels* const cells = &CellsOf(kernels, type);
  if (cells == &kernels.int8_cells) return kernels.int8_latents;
  return cells == &kernels.float32_cells ? kernels.float32_latents : kernels.bfloat16_latents;
}

// Null for weights other than float32 and bfloat16.
const Kernels* FindKernels(Isa isa, DType weight);

}  // namespace penstock::shard::cpu
