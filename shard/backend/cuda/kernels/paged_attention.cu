// Attention items in float32 without tensor cores, and the merge of all items.
#include "shard/backend/cuda/paged_attention.h"

#include "common/status.h"
#include "shard/backend/cuda/kernels/attention_parts.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kQueries = static_cast<int>(kMaxQueries);
constexpr int kMaxDim = 256;
constexpr int kDimsPerThread = kMaxDim / kThreads;

// Keys that lie in shared memory at a time. Fixed by the shape alone, since it orders the sums.
__host__ __device__ inline int TileKeys(int head_dim) { return head_dim > 128 ? 16 : 32; }
// Rows of keys are one float apart from a multiple of the banks.
__host__ __device__ inline int KeyStride(int head_dim) { return head_dim + 1; }

// One (tile, partition) and KV head: what a thread block knows about its work.
struct Job {
  AttentionTile tile;
  int group;    // query heads per KV head
  int queries;  // tile.rows * group; query m is row m / group, head m % group
  int first;    // positions of the partition
  int end;
};

// Shared memory, in floats.
struct Shared {
  float* queries;  // [kQueries, head_dim], scaled
  float* cache;    // [TileKeys, KeyStride]: keys, then values
  float* scores;   // [kQueries, TileKeys]
  float* maximum;  // [kQueries]
  float* total;    // [kQueries]
  float* rescale;  // [kQueries]
};

__host__ __device__ inline std::size_t SharedFloats(int head_dim) {
  return static_cast<std::size_t>(kQueries * head_dim + TileKeys(head_dim) * KeyStride(head_dim) +
                                  kQueries * TileKeys(head_dim) + 3 * kQueries);
}

__device__ Shared Divide(float* memory, int head_dim) {
  Shared shared;
  shared.queries = memory;
  shared.cache = shared.queries + kQueries * head_dim;
  shared.scores = shared.cache + TileKeys(head_dim) * KeyStride(head_dim);
  shared.maximum = shared.scores + kQueries * TileKeys(head_dim);
  shared.total = shared.maximum + kQueries;
  shared.rescale = shared.total + kQueries;
  return shared;
}

__device__ Job MakeJob(const AttentionArgs& args) {
  const AttentionItem item = args.items[blockIdx.x];
  Job job;
  job.tile = args.tiles[item.tile];
  job.group = static_cast<int>(args.shape.heads / args.shape.kv_heads);
  job.queries = static_cast<int>(job.tile.rows) * job.group;
  job.first = static_cast<int>(item.begin);
  job.end = static_cast<int>(item.end);
  return job;
}

template <class T>
__device__ void LoadQueries(const AttentionArgs& args, const Job& job, Shared shared) {
  const int dim = static_cast<int>(args.shape.head_dim);
  const std::uint32_t row_heads = args.shape.heads + 2 * args.shape.kv_heads;
  for (int i = threadIdx.x; i < job.queries * dim; i += blockDim.x) {
    const int m = i / dim;
    const std::uint64_t row = job.tile.first_row + m / job.group;
    const std::uint64_t head = blockIdx.y * job.group + m % job.group;
    const T* query = static_cast<const T*>(args.qkv) + (row * row_heads + head) * dim;
    shared.queries[i] = ToFloat(query[i % dim]) * args.scale;
  }
  for (int m = threadIdx.x; m < kQueries; m += blockDim.x) {
    shared.maximum[m] = -INFINITY;
    shared.total[m] = 0.0f;
  }
}

// Positions [first, first + count) of one cache array into shared memory.
template <class T>
__device__ void LoadCache(const AttentionArgs& args, const Job& job, const void* cache, int first,
                          int count, Shared shared) {
  const int dim = static_cast<int>(args.shape.head_dim);
  for (int i = threadIdx.x; i < count * dim; i += blockDim.x) {
    const std::uint32_t position = first + i / dim;
    const std::uint64_t block = args.blocks[job.tile.table + position / args.block_size];
    const std::uint64_t row = block * args.block_size + position % args.block_size;
    const T* values = static_cast<const T*>(cache) + (row * args.shape.kv_heads + blockIdx.y) * dim;
    shared.cache[i / dim * KeyStride(dim) + i % dim] = ToFloat(values[i % dim]);
  }
}

__device__ bool Sees(const AttentionArgs& args, const Job& job, int m, int position) {
  const int own = static_cast<int>(job.tile.first_position) + m / job.group;
  if (position > own || position < FirstOfChunk(args, own)) return false;
  return args.window == 0 || own - position < static_cast<int>(args.window);
}

__device__ void Score(const AttentionArgs& args, const Job& job, int first, int count,
                      Shared shared) {
  const int dim = static_cast<int>(args.shape.head_dim);
  const int keys = TileKeys(dim);
  for (int i = threadIdx.x; i < job.queries * keys; i += blockDim.x) {
    const int m = i / keys;
    const int key = i % keys;
    float score = -INFINITY;
    if (key < count && Sees(args, job, m, first + key)) {
      score = 0.0f;
      const float* k = shared.cache + key * KeyStride(dim);
      const float* q = shared.queries + m * dim;
      for (int d = 0; d < dim; ++d) score += q[d] * k[d];
      score = AdjustedScore(args, score, blockIdx.y * job.group + m % job.group, first + key,
                            static_cast<int>(job.tile.first_position) + m / job.group);
    }
    shared.scores[i] = score;
  }
}

// Scores become weights relative to the maximum so far; `rescale` corrects what came before.
__device__ void Soften(const Job& job, int keys, Shared shared) {
  const int m = threadIdx.x;
  if (m >= job.queries) return;
  float* scores = shared.scores + m * keys;
  float maximum = shared.maximum[m];
  for (int key = 0; key < keys; ++key) maximum = fmaxf(maximum, scores[key]);
  const bool nothing = maximum == -INFINITY;
  shared.rescale[m] = nothing ? 1.0f : expf(shared.maximum[m] - maximum);
  float total = shared.total[m] * shared.rescale[m];
  for (int key = 0; key < keys; ++key) {
    scores[key] = nothing ? 0.0f : expf(scores[key] - maximum);
    total += scores[key];
  }
  shared.maximum[m] = maximum;
  shared.total[m] = total;
}

// mixed[j][m] is output dimension threadIdx.x + j * kThreads of query m.
__device__ void Mix(const Job& job, int dim, int count, Shared shared,
                    float (&mixed)[kDimsPerThread][kQueries]) {
  const int keys = TileKeys(dim);
#pragma unroll
  for (int j = 0; j < kDimsPerThread; ++j) {
    const int d = static_cast<int>(threadIdx.x) + j * kThreads;
    if (d >= dim) continue;
#pragma unroll
    for (int m = 0; m < kQueries; ++m) {
      if (m >= job.queries) continue;
      float sum = mixed[j][m] * shared.rescale[m];
      for (int key = 0; key < count; ++key) {
        sum += shared.scores[m * keys + key] * shared.cache[key * KeyStride(dim) + d];
      }
      mixed[j][m] = sum;
    }
  }
}

__device__ void Store(const AttentionArgs& args, const Job& job, Shared shared,
                      const float (&mixed)[kDimsPerThread][kQueries]) {
  const int dim = static_cast<int>(args.shape.head_dim);
#pragma unroll
  for (int j = 0; j < kDimsPerThread; ++j) {
    const int d = static_cast<int>(threadIdx.x) + j * kThreads;
#pragma unroll
    for (int m = 0; m < kQueries; ++m) {
      if (d < dim && m < job.queries) PartOf(args, blockIdx.x, blockIdx.y, m)[d] = mixed[j][m];
    }
  }
  const int m = threadIdx.x;
  if (m >= job.queries) return;
  float* part = PartOf(args, blockIdx.x, blockIdx.y, m);
  part[dim] = shared.maximum[m];
  part[dim + 1] = shared.total[m];
}

template <class T>
__global__ void PartitionKernel(AttentionArgs args) {
  WaitForEarlierKernels();
  PENSTOCK_DYNAMIC_SHARED(memory);
  const int dim = static_cast<int>(args.shape.head_dim);
  const int keys = TileKeys(dim);
  const Shared shared = Divide(memory, dim);
  const Job job = MakeJob(args);
  float mixed[kDimsPerThread][kQueries] = {};
  LoadQueries<T>(args, job, shared);
  for (int first = job.first; first < job.end; first += keys) {
    const int count = job.end - first < keys ? job.end - first : keys;
    __syncthreads();
    LoadCache<T>(args, job, args.keys, first, count, shared);
    __syncthreads();
    Score(args, job, first, count, shared);
    __syncthreads();
    LoadCache<T>(args, job, args.values, first, count, shared);
    Soften(job, keys, shared);
    __syncthreads();
    Mix(job, dim, count, shared, mixed);
  }
  __syncthreads();
  Store(args, job, shared, mixed);
}

constexpr int kPartsAtOnce = 4;  // whose loads are on their way together

// sums += the outputs of parts [first, first + count), by their weights, which lane i has of part
// i.
__device__ void AddParts(const float* parts, std::uint64_t stride, int dim, int count, float weight,
                         float (&sums)[kMaxDim / kWarp]) {
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (int first = 0; first < count; first += kPartsAtOnce) {
    float values[kPartsAtOnce][kMaxDim / kWarp];
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
#pragma unroll
      for (int j = 0; j < kMaxDim / kWarp; ++j) {
        const int d = lane + j * kWarp;
        values[i][j] = d < dim && first + i < count ? parts[(first + i) * stride + d] : 0.0f;
      }
    }
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      if (first + i >= count) break;
      const float factor = __shfl_sync(kAllLanes, weight, first + i);
#pragma unroll
      for (int j = 0; j < kMaxDim / kWarp; ++j) sums[j] += values[i][j] * factor;
    }
  }
}

// One warp merges the partitions of one row and query head, from left to right. It takes 32
// partitions at a time: thread t holds the weight of partition t. Of the output, thread t computes
// dimensions t, t + 32 and so on. kOneIsDone: rows with one partition already have their output.
template <class T, bool kOneIsDone>
__global__ void MergeKernel(AttentionArgs args) {
  WaitForEarlierKernels();
  const AttentionRow row = args.rows[blockIdx.x];
  const std::uint32_t head = blockIdx.y * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (head >= args.shape.heads) return;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int dim = static_cast<int>(args.shape.head_dim);
  const std::uint32_t group = args.shape.heads / args.shape.kv_heads;
  const AttentionTile tile = args.tiles[row.tile];
  if (kOneIsDone && tile.partitions == 1) return;
  const int m = static_cast<int>((row.row - tile.first_row) * group + head % group);
  const int partitions = static_cast<int>(tile.partitions);
  const float* const parts = PartOf(args, tile.first_item, head / group, m);
  const std::uint64_t stride = PartOf(args, 1, 0, 0) - args.workspace;
  float maximum = -INFINITY;
  for (int p = lane; p < partitions; p += kWarp) maximum = fmaxf(maximum, parts[p * stride + dim]);
  for (int step = kWarp / 2; step > 0; step /= 2) {
    maximum = fmaxf(maximum, __shfl_xor_sync(kAllLanes, maximum, step));
  }
  float total = 0.0f;
  if (args.sinks != nullptr) {
    const float sink = ToFloat(static_cast<const T*>(args.sinks)[head]);
    maximum = fmaxf(maximum, sink);
    total = expf(sink - maximum);
  }
  float sums[kMaxDim / kWarp] = {};
  for (int first = 0; first < partitions; first += kWarp) {
    const int count = partitions - first < kWarp ? partitions - first : kWarp;
    const float* const own = parts + (first + lane) * stride;
    const float weight = lane < count ? expf(own[dim] - maximum) : 0.0f;
    const float own_total = lane < count ? weight * own[dim + 1] : 0.0f;
    for (int i = 0; i < count; ++i) total += __shfl_sync(kAllLanes, own_total, i);
    AddParts(parts + first * stride, stride, dim, count, weight, sums);
  }
  T* out = static_cast<T*>(args.out) + (std::uint64_t{row.row} * args.shape.heads + head) * dim;
#pragma unroll
  for (int j = 0; j < kMaxDim / kWarp; ++j) {
    const int d = lane + j * kWarp;
    if (d < dim) out[d] = FromFloat<T>(partitions > 0 ? sums[j] / total : 0.0f);
  }
}

template <class T>
void AttendInFloat(const AttentionArgs& args, Stream stream) {
  const dim3 grid(args.item_count, args.shape.kv_heads);
  const std::size_t bytes = SharedFloats(static_cast<int>(args.shape.head_dim)) * sizeof(float);
  PENSTOCK_LAUNCH(PartitionKernel<T>, grid, kThreads, bytes, stream, args);
}

}  // namespace

absl::Status PagedAttention(const AttentionArgs& args, DType dtype, Stream stream) {
  const bool tensor_cores = args.kind != AttentionKind::kFloat;
  if (tensor_cores) PENSTOCK_RETURN_IF_ERROR(AttendOnTensorCores(args, stream));
  if (args.row_count == 0) return absl::OkStatus();
  constexpr unsigned kMergeWarps = 4;
  const dim3 rows(args.row_count, CeilDivide(args.shape.heads, kMergeWarps));
  return ForElement(dtype, [&](auto element) {
    using T = decltype(element);
    if (tensor_cores) {
      PENSTOCK_LAUNCH((MergeKernel<T, true>), rows, kMergeWarps * kWarp, 0, stream, args);
    } else {
      AttendInFloat<T>(args, stream);
      PENSTOCK_LAUNCH((MergeKernel<T, false>), rows, kMergeWarps * kWarp, 0, stream, args);
    }
  });
}

}  // namespace penstock::shard::cuda
