// Sizes of attention on tensor cores, and how its thread blocks divide their shared memory.
#pragma once

#include <cstddef>

#include "shard/backend/cuda/kernels/tensor_core.cuh"

namespace penstock::shard::cuda::on_tensor_cores {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kRows = 16;   // of a product
constexpr int kDepth = 16;  // of a product
constexpr int kColumns = 8;
constexpr int kChunk = 8;  // elements of a copy

// kAdjustedScores: AttentionArgs::IsAdjusted.
template <int kHeadDim, bool kItems, bool kByteCache, bool kAdjustedScores>
struct Geometry {
  static constexpr int kDim = kHeadDim;
  static constexpr bool kAdjusted = kAdjustedScores;
  static constexpr int kRowWarps = kItems ? 1 : kWarps;
  static constexpr int kKeyWarps = kWarps / kRowWarps;
  static constexpr int kQueries = kRows * kRowWarps;
  // Two turns of 64 keys of 256 dimensions beside 64 queries are more than an A100 has.
  static constexpr int kKeys = kDim > 128 && !kItems ? 32 : 64;
  static constexpr int kKeysOfWarp = kKeys / kKeyWarps;
  // An odd number of 16 bytes: eight rows of a matrix lie in different banks.
  static constexpr int kStride = kDim + kChunk;
  static constexpr int kScoreTiles = kKeysOfWarp / kColumns;
  static constexpr int kOutTiles = kDim / kColumns;
  static constexpr int kSteps = kDim / kDepth;
  // Fragments of the queries stay in registers where there are enough of them.
  static constexpr bool kKeepQueries = kDim <= 128;

  static constexpr int kQueryElements = kQueries * kStride;
  static constexpr int kTileElements = kKeys * kStride;
  static constexpr bool kBytes = kByteCache;   // values of the cache have one byte
  static constexpr int kOutStride = kDim + 4;  // floats, where the warps of an item add up
  static constexpr int kPartBytes = kItems ? kWarps * kRows * (kOutStride + 2) * 4 : 0;
  static constexpr int kTileBytes =
      kBytes ? kTileElements * 2 + 2 * kKeys * kDim : 4 * kTileElements * 2;
  static constexpr std::size_t kSharedBytes =
      kQueryElements * 2 + (kTileBytes > kPartBytes ? kTileBytes : kPartBytes);
  static_assert(kSharedBytes <= 163 << 10);
};

// Of the shared memory.
template <class G>
struct Shared {
  Bf16* queries;  // [kQueries][kStride]
  Bf16* keys;     // [2][kKeys][kStride]; of bytes: [kKeys][kStride]
  Bf16* values;   // the same; of bytes: that of the keys

  __device__ explicit Shared(float* memory)
      : queries(reinterpret_cast<Bf16*>(memory)),
        keys(queries + G::kQueryElements),
        values(G::kBytes ? keys : keys + 2 * G::kTileElements) {}

  // Where the copies of a turn arrive.
  __device__ Bf16* Keys(int turn) const {
    return G::kBytes ? keys + G::kTileElements : keys + turn * G::kTileElements;
  }
  __device__ Bf16* Values(int turn) const {
    return G::kBytes ? Keys(0) + G::kKeys * G::kDim / 2 : values + turn * G::kTileElements;
  }
};

}  // namespace penstock::shard::cuda::on_tensor_cores
