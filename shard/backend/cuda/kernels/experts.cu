// The choice of experts, their slots, and what is computed for each element.
#include "shard/backend/cuda/experts.h"

#include "shard/backend/cuda/kernels/row_grid.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr float kLeastSum = 1e-20f;  // as in transformers
constexpr unsigned kSlotThreads = 128;

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// A value and its place in an order: larger values first, of equal ones the lower index.
struct Ranked {
  float value;
  int index;  // -1: there is none

  __device__ bool IsBefore(const Ranked& other) const {
    return value > other.value || (value == other.value && index < other.index);
  }
};

// The first of values[begin + lane], values[begin + lane + step] ... that comes after `last`.
__device__ inline Ranked Next(const float* values, int begin, int end, int step, Ranked last) {
  Ranked best{0.0f, -1};
  for (int i = begin; i < end; i += step) {
    const Ranked candidate{values[i], i};
    if (last.index >= 0 && !last.IsBefore(candidate)) continue;
    if (best.index < 0 || candidate.IsBefore(best)) best = candidate;
  }
  return best;
}

__device__ inline Ranked FirstOfWarp(Ranked own) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Ranked other{FromLane(own.value, step), FromLane(own.index, step)};
    if (other.index >= 0 && (own.index < 0 || other.IsBefore(own))) own = other;
  }
  return own;
}

// weights[e] of all experts of the row.
template <class T>
__device__ void WeighExperts(const RoutingArgs& args, float* weights) {
  const T* const scores =
      static_cast<const T*>(args.scores) + std::uint64_t{blockIdx.x} * args.experts;
  float largest = -INFINITY;
  for (std::uint32_t e = threadIdx.x; e < args.experts; e += kWarp) {
    weights[e] = ToFloat(scores[e]) * args.score_scale;
    largest = fmaxf(largest, weights[e]);
  }
  if (args.sigmoid) {
    for (std::uint32_t e = threadIdx.x; e < args.experts; e += kWarp) {
      weights[e] = 1.0f / (1.0f + expf(-weights[e]));
    }
    return;
  }
  largest = BlockReduce(largest, Larger{});
  float sum = 0.0f;
  for (std::uint32_t e = threadIdx.x; e < args.experts; e += kWarp) {
    weights[e] = expf(weights[e] - largest);
    sum += weights[e];
  }
  sum = BlockReduce(sum, Sum{});
  for (std::uint32_t e = threadIdx.x; e < args.experts; e += kWarp) weights[e] /= sum;
}

// Experts of groups that are not kept get the least value.
__device__ inline void DropGroups(const RoutingArgs& args, float* values, float* groups) {
  const int size = static_cast<int>(args.experts / args.groups);
  const int count = static_cast<int>(args.groups);
  for (int group = threadIdx.x; group < count; group += kWarp) {
    Ranked last{0.0f, -1};
    float sum = 0.0f;
    for (std::uint32_t i = 0; i < args.group_best; ++i) {
      last = Next(values, group * size, (group + 1) * size, 1, last);
      sum += last.value;
    }
    groups[group] = sum == sum ? sum : -INFINITY;
  }
  __syncthreads();
  for (int group = threadIdx.x; group < count; group += kWarp) {
    std::uint32_t better = 0;
    for (int i = 0; i < count; ++i) {
      better += Ranked{groups[i], i}.IsBefore({groups[group], group}) ? 1 : 0;
    }
    if (better < args.kept_groups) continue;
    for (int e = group * size; e < (group + 1) * size; ++e) values[e] = -INFINITY;
  }
  __syncthreads();
}

// A warp for each row. Lane i has choice i, in the order of the values; choices leave in ascending
// order of expert.
template <class T>
__global__ void ChooseExpertsKernel(RoutingArgs args) {
  WaitForEarlierKernels();
  PENSTOCK_DYNAMIC_SHARED(memory);
  float* const weights = memory;
  float* const values = weights + args.experts;
  float* const groups = values + args.experts;
  WeighExperts<T>(args, weights);
  for (std::uint32_t e = threadIdx.x; e < args.experts; e += kWarp) {
    const float bias =
        args.choice_bias == nullptr ? 0.0f : ToFloat(static_cast<const T*>(args.choice_bias)[e]);
    const float value = weights[e] + bias;
    values[e] = value == value ? value : -INFINITY;
  }
  __syncthreads();
  if (args.groups > 1) DropGroups(args, values, groups);

  const int lane = static_cast<int>(threadIdx.x);
  const int chosen = static_cast<int>(args.chosen);
  Ranked last{0.0f, -1};
  float sum = 0.0f;
  int own = 0;
  for (int i = 0; i < chosen; ++i) {
    last = FirstOfWarp(Next(values, lane, static_cast<int>(args.experts), kWarp, last));
    sum += weights[last.index];
    if (lane == i) own = last.index;
  }
  int place = 0;
  for (int i = 0; i < chosen; ++i) place += __shfl_sync(kAllLanes, own, i) < own ? 1 : 0;
  if (lane >= chosen) return;
  float weight = weights[own] * (args.scale / (args.renormalized ? sum + kLeastSum : 1.0f));
  if (args.expert_scale != nullptr)
    weight *= ToFloat(static_cast<const T*>(args.expert_scale)[own]);
  const std::uint64_t to = std::uint64_t{blockIdx.x} * args.chosen + place;
  args.choices[to] = own;
  args.weights[to] = weight;
}

// A block for each expert. Each thread looks at consecutive choices.
__global__ void SortChoicesKernel(SlotArgs args) {
  WaitForEarlierKernels();
  __shared__ int counts[kSlotThreads];
  const int expert = static_cast<int>(blockIdx.x);
  const std::uint32_t share = (args.count + kSlotThreads - 1) / kSlotThreads;
  const std::uint32_t begin = threadIdx.x * share;
  const std::uint32_t end = begin + share < args.count ? begin + share : args.count;
  int lower = 0;
  int mine = 0;
  for (std::uint32_t i = begin; i < end; ++i) {
    lower += args.choices[i] < expert ? 1 : 0;
    mine += args.choices[i] == expert ? 1 : 0;
  }
  counts[threadIdx.x] = mine;
  const int first = BlockReduce(lower, Sum{});
  __syncthreads();
  int slot = first;
  for (unsigned i = 0; i < threadIdx.x; ++i) slot += counts[i];
  for (std::uint32_t i = begin; i < end; ++i) {
    if (args.choices[i] != expert) continue;
    args.slots[i] = slot;
    args.choice_of[slot++] = static_cast<std::int32_t>(i);
  }
  if (threadIdx.x != 0) return;
  args.first[expert] = first;
  if (blockIdx.x + 1 == args.experts) args.first[args.experts] = static_cast<int>(args.count);
}

template <class T, int kCount>
__global__ void WeighInputsKernel(WeighArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const auto choice = static_cast<std::uint32_t>(args.choice_of[blockIdx.x]);
  float values[kCount];
  Load<kCount>(
      static_cast<const T*>(args.in) + std::uint64_t{choice / args.chosen} * args.width + at,
      values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] *= args.weights[choice];
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, values);
}

template <class T, int kCount>
__global__ void SumExpertsKernel(ExpertSumArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  T* const out = static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at;
  float sums[kCount] = {};
  if (args.accumulate) Load<kCount>(out, sums);
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * args.chosen;
  for (std::uint64_t i = begin; i < begin + args.chosen; ++i) {
    if (args.matrices[args.choices[i]] == nullptr) continue;  // another rank adds it
    const float weight = args.weights == nullptr ? 1.0f : args.weights[i];
    float values[kCount];
    Load<kCount>(static_cast<const T*>(args.in) +
                     static_cast<std::uint64_t>(args.slots[i]) * args.width + at,
                 values);
#pragma unroll
    for (int j = 0; j < kCount; ++j) sums[j] += weight * values[j];
  }
  Store<kCount>(out, sums);
}

}  // namespace

absl::Status ChooseExperts(const RoutingArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  if (args.experts > kMostExperts || args.chosen > kMostChosen || args.chosen > args.experts) {
    return absl::InternalError("a choice of experts beyond the limits of its kernel");
  }
  const std::size_t bytes = (2 * args.experts + args.groups) * sizeof(float);
  return ForElement(dtype, [&](auto element) {
    PENSTOCK_LAUNCH(ChooseExpertsKernel<decltype(element)>, args.rows, kWarp, bytes, stream, args);
  });
}

absl::Status SortChoices(const SlotArgs& args, Stream stream) {
  if (args.count == 0) return absl::OkStatus();
  PENSTOCK_LAUNCH(SortChoicesKernel, args.experts, kSlotThreads, 0, stream, args);
  return LaunchStatus();
}

absl::Status WeighInputs(const WeighArgs& args, DType dtype, Stream stream) {
  if (args.count == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((WeighInputsKernel<T, kCount>), GridOf<kCount>(args.count, args.width),
                    kThreads, 0, stream, args);
  });
}

absl::Status SumExperts(const ExpertSumArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((SumExpertsKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads,
                    0, stream, args);
  });
}

}  // namespace penstock::shard::cuda
