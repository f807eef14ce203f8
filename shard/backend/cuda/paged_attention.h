// Attention over the paged cache: decode, prefill chunks and cached prefixes.
//
// The host cuts a step into work of two kinds:
//
// * Items, for few queries over many positions (flash decoding, Dao et al. 2023): a thread block
//   computes one partition of a sequence's positions for a tile of query rows and one KV head with
//   all query heads that share it; the partitions of a row are then merged from left to right.
// * Chunks, for many queries (FlashAttention-2, Dao 2023, arXiv:2307.08691): a thread block reads
//   all positions that up to kChunkQueries queries see. It keeps running maxima and totals in
//   registers and needs no workspace.
//
// Bfloat16 heads of usual sizes are computed on tensor cores: scores and sums in float32, softmax
// weights rounded to bfloat16. Partitions are as short as the number of items allows, so that no
// thread block works much longer than the others, and the last bits of a result depend on the other
// sequences of the step. All other heads are computed
// in float32 without tensor cores, in items of fixed partitions. Then a row's bits depend on its
// own sequence alone.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {

inline constexpr std::uint32_t kPartition = 256;       // positions, where they are fixed
inline constexpr std::uint32_t kMaxQueries = 16;       // of an item: rows x heads per KV head
inline constexpr std::uint32_t kChunkQueries = 64;     // of a chunk
inline constexpr std::uint32_t kPositionTile = 64;     // partitions and chunks begin at multiples
inline constexpr std::uint32_t kMostItemTiles = 4;     // a sequence with more rows becomes chunks
inline constexpr std::uint32_t kResidentBlocks = 396;  // three for each of 132 multiprocessors

// What computes the attention of a model. kFixed: tensor cores with fixed partitions and no chunks,
// so that a row's bits depend on its own sequence alone.
enum class AttentionKind { kFloat, kTensorCores, kFixed };
// `adjusted`: AttentionArgs::IsAdjusted.
AttentionKind AttentionKindOf(DType dtype, const HeadShape& shape, std::uint32_t block_size,
                              bool adjusted = false);

// Consecutive rows of one sequence.
struct AttentionTile {
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  std::uint32_t first_position = 0;  // of first_row
  std::uint32_t table = 0;           // where the sequence's blocks begin in `blocks`
  std::uint32_t begin = 0;           // the first position to look at
  std::uint32_t partitions = 0;      // 0 for chunks
  std::uint32_t first_item = 0;      // index into `items`; item i belongs to workspace slot i
};

// Positions [begin, end) for a tile: one thread block per KV head. Empty: padding.
struct AttentionItem {
  std::uint32_t tile = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

// A row whose partitions are to be merged.
struct AttentionRow {
  std::uint32_t row = 0;
  std::uint32_t tile = 0;
};

// The work of a step for layers of one window, made on the host.
struct AttentionWork {
  std::vector<AttentionTile> tiles;
  std::vector<AttentionItem> items;
  std::vector<AttentionRow> rows;
  std::vector<AttentionTile> chunks;  // longest first, so that none of the longest begins last
};

// `tables[i]`: where segment i's blocks begin. `window`: positions a query sees; 0 = all. `chunk`:
// it sees its own chunk of so many positions; 0 = all.
AttentionWork PlanAttention(std::span<const RaggedSegment> segments,
                            std::span<const std::uint32_t> tables, const HeadShape& shape,
                            std::uint32_t window, AttentionKind kind, std::uint32_t chunk = 0);

// Items that partitions may add on tensor cores: no plan has more than its rows and these.
std::uint32_t MostSpareItems(std::uint32_t kv_heads);

// Float32 values that `items` work items need.
std::uint64_t WorkspaceFloats(std::uint64_t items, const HeadShape& shape);

// Everything lies on the device. `scale` is above 0.
struct AttentionArgs {
  const void* qkv = nullptr;     // elements [rows, (heads + 2 kv_heads) * head_dim]
  const void* keys = nullptr;    // elements [blocks * block_size, kv_heads, head_dim]
  const void* values = nullptr;  // the same
  void* out = nullptr;           // elements [rows, heads * head_dim]
  const AttentionTile* tiles = nullptr;
  const AttentionItem* items = nullptr;
  const AttentionRow* rows = nullptr;
  const AttentionTile* chunks = nullptr;
  const std::uint32_t* blocks = nullptr;  // all tables, one after another
  float* workspace = nullptr;             // WorkspaceFloats(item_count, shape)
  std::uint32_t item_count = 0;
  std::uint32_t row_count = 0;
  std::uint32_t chunk_count = 0;
  std::uint32_t block_size = 16;
  std::uint32_t window = 0;
  float scale = 1.0f;
  HeadShape shape;
  AttentionKind kind = AttentionKind::kFloat;  // of the plan
  bool fp8_cache = false;                      // keys and values are e4m3; not for kFloat
  // As in AttentionOp.
  std::uint32_t chunk = 0;
  float softcap = 0.0f;
  const void* sinks = nullptr;    // elements [heads], or null
  const float* slopes = nullptr;  // [heads], or null
  float rounded_scale = 0.0f;     // of Alibi

  // Whether a score is more than a scaled product, or a query sees less than its window.
  bool IsAdjusted() const {
    return chunk > 0 || softcap != 0.0f || sinks != nullptr || slopes != nullptr;
  }
};
absl::Status PagedAttention(const AttentionArgs& args, DType dtype, Stream stream);

}  // namespace penstock::shard::cuda
