// Attention on tensor cores: items (flash decoding) and chunks (FlashAttention-2) by one kernel.
//
// A block has four warps and 16 query rows for each warp that has rows of its own: four for chunks;
// one for items, where the warps share the rows and divide each tile of keys among them, and add up
// at the end. Query m of a block is row m / group, head m % group. Keys and values go through
// shared memory in two turns: while a tile is multiplied, the next one is on its way.
//
// Keys and values of one byte are copied to a buffer of their own. Each tile is then widened to
// bfloat16 without loss. One widened tile holds keys and values in turn.
#pragma once

#include <cstdint>

#include "common/status.h"
#include "shard/backend/cuda/kernels/attention_parts.cuh"
#include "shard/backend/cuda/kernels/tensor_core.cuh"
#include "shard/backend/cuda/kernels/tensor_geometry.cuh"
#include "shard/backend/cuda/kernels/weight_forms.cuh"

namespace penstock::shard::cuda::on_tensor_cores {

constexpr float kLog2E = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;

// What a block knows about its work.
struct Job {
  AttentionTile tile;
  int begin, end;  // positions
  int group;
  int queries;
  unsigned block_shift;
};

// The state that a thread keeps for two rows of its warp: row threadIdx.x % 32 / 4 at index 0, and
// the row 8 further at index 1.
template <class G>
struct Rows {
  float out[G::kOutTiles][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};  // of scores * scale * log2(e), over four lanes
  float total[2] = {};                        // the thread's share
};

template <class G>
struct Queries {
  std::uint32_t fragments[G::kKeepQueries ? G::kSteps : 1][4];
};

__device__ inline int Lane() { return static_cast<int>(threadIdx.x % kWarp); }
template <class G>
__device__ int RowWarp() {
  return static_cast<int>(threadIdx.x / kWarp) % G::kRowWarps;
}
template <class G>
__device__ int KeyWarp() {
  return static_cast<int>(threadIdx.x / kWarp) / G::kRowWarps;
}

// The offset of the 16 bytes that a lane addresses for a fragment of A or of transposed B. The
// matrices of a fragment: 8 rows, the next 8 rows, then the same rows 8 columns on.
__device__ inline int RowsFirst(int stride) {
  return (Lane() % 16) * stride + Lane() / 16 * kChunk;
}
// For B from rows of keys: 8 rows, the same rows 8 columns on, then the next 8 rows likewise.
__device__ inline int ColumnsFirst(int stride) {
  return (Lane() % 8 + Lane() / 16 * 8) * stride + Lane() / 8 % 2 * kChunk;
}

template <class G>
__device__ void LoadQueries(const AttentionArgs& args, const Job& job, Bf16* to) {
  constexpr int kChunks = G::kDim / kChunk;
  const std::uint32_t row_heads = args.shape.heads + 2 * args.shape.kv_heads;
  const Bf16* const qkv = static_cast<const Bf16*>(args.qkv);
  for (int i = threadIdx.x; i < G::kQueries * kChunks; i += kThreads) {
    const int m = i / kChunks;
    const int at = i % kChunks * kChunk;
    const bool there = m < job.queries;
    const std::uint64_t row = job.tile.first_row + (there ? m / job.group : 0);
    const std::uint64_t head = blockIdx.y * job.group + (there ? m % job.group : 0);
    CopyAsync(to + m * G::kStride + at, qkv + (row * row_heads + head) * G::kDim + at, there);
  }
}

// Positions [first, first + kKeys) of one cache array; zeros after the last one of the job, where
// memory may hold a NaN, and 0 * NaN is not 0.
template <class G>
__device__ void LoadCache(const AttentionArgs& args, const Job& job, const void* cache, int first,
                          Bf16* to) {
  constexpr int kElement = G::kBytes ? 1 : 2;
  constexpr int kOfCopy = 16 / kElement;
  constexpr int kChunks = G::kDim / kOfCopy;
  constexpr int kStride = G::kBytes ? G::kDim / 2 : G::kStride;  // in elements of `to`
  const std::uint32_t* const blocks = args.blocks + job.tile.table;
#pragma unroll 4
  for (int i = threadIdx.x; i < G::kKeys * kChunks; i += kThreads) {
    const int key = i / kChunks;
    const int at = i % kChunks;
    const bool there = first + key < job.end;
    const std::uint32_t position = there ? first + key : first;
    const std::uint64_t row =
        (std::uint64_t{blocks[position >> job.block_shift]} << job.block_shift) +
        (position & (args.block_size - 1));
    const std::uint64_t from =
        (row * args.shape.kv_heads + blockIdx.y) * G::kDim * kElement + at * 16;
    CopyAsync(to + key * kStride + at * kChunk,
              reinterpret_cast<const Bf16*>(static_cast<const std::uint8_t*>(cache) + from), there);
  }
}

// Makes the tile of bfloat16 from the bytes that have arrived, and waits for all threads. The tile
// before it has been read. Nothing to do where the copies are the tile.
template <class G>
__device__ void Widen(const Bf16* arrived, Bf16* tile) {
  if constexpr (G::kBytes) {
    constexpr int kOfCopy = 16;
    constexpr int kChunks = G::kDim / kOfCopy;
    for (int i = threadIdx.x; i < G::kKeys * kChunks; i += kThreads) {
      const Bytes16 bytes = reinterpret_cast<const Bytes16*>(arrived)[i];
      Bf16* const to = tile + i / kChunks * G::kStride + i % kChunks * kOfCopy;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Bytes16 wide;
#pragma unroll
        for (int word = 0; word < 2; ++word) {
          std::uint32_t pairs[2];
          WidenFour<WeightForm::kFp8>(bytes.words[half * 2 + word], pairs);
          wide.words[word * 2] = pairs[0];
          wide.words[word * 2 + 1] = pairs[1];
        }
        *reinterpret_cast<Bytes16*>(to + half * kChunk) = wide;
      }
    }
    __syncthreads();
  }
}

template <class G>
__device__ void KeepQueries(const Bf16* queries, Queries<G>& kept) {
  if constexpr (G::kKeepQueries) {
    const Bf16* const own = queries + RowWarp<G>() * kRows * G::kStride + RowsFirst(G::kStride);
#pragma unroll
    for (int k = 0; k < G::kSteps; ++k) LoadMatrices(kept.fragments[k], own + k * kDepth);
  }
}

// scores[n] = queries * keys^T for 8 keys each.
template <class G>
__device__ void Score(const Shared<G>& shared, const Queries<G>& kept, const Bf16* keys,
                      float (&scores)[G::kScoreTiles][4]) {
  const Bf16* const queries =
      shared.queries + RowWarp<G>() * kRows * G::kStride + RowsFirst(G::kStride);
  const Bf16* const own =
      keys + KeyWarp<G>() * G::kKeysOfWarp * G::kStride + ColumnsFirst(G::kStride);
#pragma unroll
  for (int k = 0; k < G::kSteps; ++k) {
    std::uint32_t a[4];
    if constexpr (G::kKeepQueries) {
      memcpy(a, kept.fragments[k], sizeof a);
    } else {
      LoadMatrices(a, queries + k * kDepth);
    }
#pragma unroll
    for (int n = 0; n < G::kScoreTiles; n += 2) {
      std::uint32_t b[4];
      LoadMatrices(b, own + n * kColumns * G::kStride + k * kDepth);
      MultiplyAdd(scores[n], a, b[0], b[1]);
      MultiplyAdd(scores[n + 1], a, b[2], b[3]);
    }
  }
}

// The scores of softmax, times log2(e), where they are more than scaled products.
template <class G>
__device__ void Adjust(const AttentionArgs& args, const Job& job, int first,
                       float (&scores)[G::kScoreTiles][4]) {
  const int key = first + KeyWarp<G>() * G::kKeysOfWarp + Lane() % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int m = RowWarp<G>() * kRows + Lane() / 4 + half * 8;
    const int own = static_cast<int>(job.tile.first_position) + m / job.group;
    const std::uint32_t head = blockIdx.y * job.group + m % job.group;
#pragma unroll
    for (int n = 0; n < G::kScoreTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float& score = scores[n][half * 2 + i];
        score = AdjustedScore(args, score * args.scale, head, key + n * kColumns + i, own) * kLog2E;
      }
    }
  }
}

// Sets scores of positions that a row must not attend to to -infinity. Skips a tile without any.
template <class G>
__device__ void Mask(const AttentionArgs& args, const Job& job, int first,
                     float (&scores)[G::kScoreTiles][4]) {
  const int first_row = static_cast<int>(job.tile.first_position);
  const int last_row = first_row + static_cast<int>(job.tile.rows) - 1;
  const int window = static_cast<int>(args.window);
  if (first + G::kKeys - 1 <= first_row && first + G::kKeys <= job.end &&
      (window == 0 || last_row - first < window) &&
      (!G::kAdjusted || first >= FirstOfChunk(args, last_row))) {
    return;
  }
  const int key = first + KeyWarp<G>() * G::kKeysOfWarp + Lane() % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int m = RowWarp<G>() * kRows + Lane() / 4 + half * 8;
    const int own = first_row + m / job.group;
    const int last = own < job.end ? own : job.end - 1;
    int before = window == 0 ? -1 : own - window;
    if (G::kAdjusted && before < FirstOfChunk(args, own) - 1) before = FirstOfChunk(args, own) - 1;
#pragma unroll
    for (int n = 0; n < G::kScoreTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int position = key + n * kColumns + i;
        if (position > last || position <= before) scores[n][half * 2 + i] = -INFINITY;
      }
    }
  }
}

__device__ inline float OverRow(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}
__device__ inline float SumOverRow(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}

// Scores become weights relative to the maximum so far, and what came before is corrected.
template <class G>
__device__ void Soften(float scale_log2, float (&scores)[G::kScoreTiles][4], Rows<G>& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = -INFINITY;
#pragma unroll
    for (int n = 0; n < G::kScoreTiles; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
    }
    const float maximum = fmaxf(rows.maximum[half], OverRow(largest) * scale_log2);
    const float base = maximum == -INFINITY ? 0.0f : maximum;  // a row that has seen nothing yet
    const float before = exp2f(rows.maximum[half] - base);
    float total = rows.total[half] * before;
#pragma unroll
    for (int n = 0; n < G::kScoreTiles; ++n) {
#pragma unroll
      for (int i = half * 2; i < half * 2 + 2; ++i) {
        scores[n][i] = exp2f(scores[n][i] * scale_log2 - base);
        total += scores[n][i];
      }
    }
    rows.maximum[half] = maximum;
    rows.total[half] = total;
#pragma unroll
    for (int d = 0; d < G::kOutTiles; ++d) {
      rows.out[d][half * 2] *= before;
      rows.out[d][half * 2 + 1] *= before;
    }
  }
}

// out += weights * values.
template <class G>
__device__ void Mix(const Bf16* values, const float (&weights)[G::kScoreTiles][4], Rows<G>& rows) {
  const Bf16* const own =
      values + KeyWarp<G>() * G::kKeysOfWarp * G::kStride + RowsFirst(G::kStride);
#pragma unroll
  for (int k = 0; k < G::kKeysOfWarp / kDepth; ++k) {
    // The accumulators of two products are the fragment of A for 16 keys.
    const float(&low)[4] = weights[2 * k];
    const float(&high)[4] = weights[2 * k + 1];
    const std::uint32_t a[4] = {PackPair(low[0], low[1]), PackPair(low[2], low[3]),
                                PackPair(high[0], high[1]), PackPair(high[2], high[3])};
#pragma unroll
    for (int d = 0; d < G::kOutTiles; d += 2) {
      std::uint32_t b[4];
      LoadTransposed(b, own + k * kDepth * G::kStride + d * kColumns);
      MultiplyAdd(rows.out[d], a, b[0], b[1]);
      MultiplyAdd(rows.out[d + 1], a, b[2], b[3]);
    }
  }
}

// All positions of the job. Groups of copies, in order: queries and first keys, first values, then
// in turns the keys and the values of the next tile.
template <class G>
__device__ void Attend(const AttentionArgs& args, const Job& job, const Shared<G>& shared,
                       Rows<G>& rows) {
  const float scale_log2 = G::kAdjusted ? 1.0f : args.scale * kLog2E;
  Queries<G> kept;
  LoadQueries<G>(args, job, shared.queries);
  LoadCache<G>(args, job, args.keys, job.begin, shared.Keys(0));
  EndCopyGroup();
  LoadCache<G>(args, job, args.values, job.begin, shared.Values(0));
  EndCopyGroup();
  int turn = 0;
  for (int first = job.begin; first < job.end; first += G::kKeys, turn = 1 - turn) {
    const int next = first + G::kKeys;
    WaitForCopies<1>();
    __syncthreads();  // the keys are there, and the tile before has been read
    Widen<G>(shared.Keys(turn), shared.keys);
    if (next < job.end) LoadCache<G>(args, job, args.keys, next, shared.Keys(1 - turn));
    EndCopyGroup();
    if (first == job.begin) KeepQueries<G>(shared.queries, kept);
    float scores[G::kScoreTiles][4] = {};
    Score<G>(shared, kept, G::kBytes ? shared.keys : shared.Keys(turn), scores);
    if constexpr (G::kAdjusted) Adjust<G>(args, job, first, scores);
    Mask<G>(args, job, first, scores);
    Soften<G>(scale_log2, scores, rows);
    WaitForCopies<1>();
    __syncthreads();  // the values are there
    Widen<G>(shared.Values(turn), shared.values);
    if (next < job.end) LoadCache<G>(args, job, args.values, next, shared.Values(1 - turn));
    EndCopyGroup();
    Mix<G>(G::kBytes ? shared.values : shared.Values(turn), scores, rows);
  }
  for (float& total : rows.total) total = SumOverRow(total);
}

// Joins the sink of a head to a row's total. Returns what the row's sum is multiplied by.
__device__ inline float JoinSink(const AttentionArgs& args, std::uint32_t head, float maximum,
                                 float& total) {
  const float sink = ToFloat(static_cast<const Bf16*>(args.sinks)[head]) * kLog2E;
  const float larger = fmaxf(maximum, sink);
  const float factor = exp2f(maximum - larger);
  total = total * factor + exp2f(sink - larger);
  return factor;
}

template <class G>
__device__ void JoinSinks(const AttentionArgs& args, const Job& job, Rows<G>& rows) {
  if (args.sinks == nullptr) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int m = RowWarp<G>() * kRows + Lane() / 4 + half * 8;
    const float factor = JoinSink(args, blockIdx.y * job.group + m % job.group, rows.maximum[half],
                                  rows.total[half]);
#pragma unroll
    for (int d = 0; d < G::kOutTiles; ++d) {
      rows.out[d][half * 2] *= factor;
      rows.out[d][half * 2 + 1] *= factor;
    }
  }
}

// Chunks: rows are done. They leave through the part of shared memory that held their queries, so
// that 16 bytes are written at a time.
template <class G>
__device__ void StoreChunk(const AttentionArgs& args, const Job& job, Bf16* shared,
                           const Rows<G>& rows) {
  Bf16* const own = shared + RowWarp<G>() * kRows * G::kStride;
#pragma unroll
  for (int d = 0; d < G::kOutTiles; ++d) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t pair = PackPair(rows.out[d][half * 2] / rows.total[half],
                                          rows.out[d][half * 2 + 1] / rows.total[half]);
      Bf16* const to = own + (Lane() / 4 + half * 8) * G::kStride + d * kColumns + Lane() % 4 * 2;
      *reinterpret_cast<std::uint32_t*>(to) = pair;
    }
  }
  __syncwarp();
  constexpr int kChunks = G::kDim / kChunk;
  Bf16* const out = static_cast<Bf16*>(args.out);
  for (int i = Lane(); i < kRows * kChunks; i += kWarp) {
    const int m = RowWarp<G>() * kRows + i / kChunks;
    if (m >= job.queries) break;
    const std::uint64_t row = job.tile.first_row + m / job.group;
    const std::uint64_t head = blockIdx.y * job.group + m % job.group;
    Copy16(out + (row * args.shape.heads + head) * G::kDim + i % kChunks * kChunk,
           own + i / kChunks * G::kStride + i % kChunks * kChunk);
  }
}

// Items: the warps have seen different keys of the same rows. Their sums, maxima and totals meet in
// shared memory and are added in the order of the warps. A row of one partition is done.
template <class G>
__device__ void StorePart(const AttentionArgs& args, const Job& job, float* shared,
                          const Rows<G>& rows) {
  float* const sums = shared;                                   // [kWarps][kRows][kOutStride]
  float* const states = sums + kWarps * kRows * G::kOutStride;  // [kWarps][kRows][2]
  const int warp = KeyWarp<G>();
  __syncthreads();  // the last tile has been read
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int m = warp * kRows + Lane() / 4 + half * 8;
#pragma unroll
    for (int d = 0; d < G::kOutTiles; ++d) {
      float* const to = sums + m * G::kOutStride + d * kColumns + Lane() % 4 * 2;
      to[0] = rows.out[d][half * 2];
      to[1] = rows.out[d][half * 2 + 1];
    }
    if (Lane() % 4 == 0) {
      states[m * 2] = rows.maximum[half];
      states[m * 2 + 1] = rows.total[half];
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < job.queries * G::kDim; i += kThreads) {
    const int m = i / G::kDim;
    float maximum = -INFINITY;
    for (int w = 0; w < kWarps; ++w) maximum = fmaxf(maximum, states[(w * kRows + m) * 2]);
    const float base = maximum == -INFINITY ? 0.0f : maximum;
    float sum = 0.0f;
    float total = 0.0f;
    for (int w = 0; w < kWarps; ++w) {
      const float factor = exp2f(states[(w * kRows + m) * 2] - base);
      sum += sums[(w * kRows + m) * G::kOutStride + i % G::kDim] * factor;
      total += states[(w * kRows + m) * 2 + 1] * factor;
    }
    if (job.tile.partitions == 1) {  // nothing to merge
      const std::uint64_t row = job.tile.first_row + m / job.group;
      const std::uint64_t head = blockIdx.y * job.group + m % job.group;
      if (G::kAdjusted && args.sinks != nullptr) {
        sum *= JoinSink(args, static_cast<std::uint32_t>(head), maximum, total);
      }
      static_cast<Bf16*>(args.out)[(row * args.shape.heads + head) * G::kDim + i % G::kDim] =
          FromFloat<Bf16>(sum / total);
      continue;
    }
    float* const part = PartOf(args, blockIdx.x, blockIdx.y, m);
    part[i % G::kDim] = sum;
    if (i % G::kDim != 0) continue;
    part[G::kDim] = maximum * kLn2;
    part[G::kDim + 1] = total;
  }
}

template <int kDim, bool kItems, bool kBytes, bool kAdjusted>
__global__ void __launch_bounds__(kThreads)
    AttentionKernel(AttentionArgs args, unsigned block_shift) {
  WaitForEarlierKernels();
  using G = Geometry<kDim, kItems, kBytes, kAdjusted>;
  PENSTOCK_DYNAMIC_SHARED(memory);
  Job job;
  if constexpr (kItems) {
    const AttentionItem item = args.items[blockIdx.x];
    if (item.begin >= item.end) return;  // padding of a recorded step
    job.tile = args.tiles[item.tile];
    job.begin = static_cast<int>(item.begin);
    job.end = static_cast<int>(item.end);
  } else {
    job.tile = args.chunks[blockIdx.x];
    job.begin = static_cast<int>(job.tile.begin);
    job.end = static_cast<int>(job.tile.first_position + job.tile.rows);
  }
  job.group = static_cast<int>(args.shape.heads / args.shape.kv_heads);
  job.queries = static_cast<int>(job.tile.rows) * job.group;
  job.block_shift = block_shift;
  const Shared<G> shared(memory);
  Rows<G> rows;
  Attend<G>(args, job, shared, rows);
  if constexpr (kItems) {
    StorePart<G>(args, job, reinterpret_cast<float*>(shared.keys), rows);
  } else {
    if constexpr (kAdjusted) JoinSinks<G>(args, job, rows);
    StoreChunk<G>(args, job, shared.queries, rows);
  }
}

template <int kDim, bool kItems, bool kBytes, bool kAdjusted>
absl::Status Launch(const AttentionArgs& args, std::uint32_t count, Stream stream) {
  if (count == 0) return absl::OkStatus();
  constexpr std::size_t kShared = Geometry<kDim, kItems, kBytes, kAdjusted>::kSharedBytes;
  static const absl::Status allowed =
      AllowShared(AttentionKernel<kDim, kItems, kBytes, kAdjusted>, kShared);
  if (!allowed.ok()) return allowed;
  unsigned shift = 0;
  while ((1u << shift) < args.block_size) ++shift;
  const dim3 grid(count, args.shape.kv_heads);
  PENSTOCK_LAUNCH((AttentionKernel<kDim, kItems, kBytes, kAdjusted>), grid, kThreads, kShared,
                  stream, args, shift);
  return LaunchStatus();
}

template <int kDim, bool kBytes, bool kAdjusted>
absl::Status LaunchBoth(const AttentionArgs& args, Stream stream) {
  PENSTOCK_RETURN_IF_ERROR(
      (Launch<kDim, false, kBytes, kAdjusted>(args, args.chunk_count, stream)));
  return Launch<kDim, true, kBytes, kAdjusted>(args, args.item_count, stream);
}

template <int kDim, bool kAdjusted>
absl::Status LaunchFor(const AttentionArgs& args, Stream stream) {
  return args.fp8_cache ? LaunchBoth<kDim, true, kAdjusted>(args, stream)
                        : LaunchBoth<kDim, false, kAdjusted>(args, stream);
}

}  // namespace penstock::shard::cuda::on_tensor_cores
