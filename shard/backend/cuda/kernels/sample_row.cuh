// What the sampler's kernels share: how tokens are ordered, and what a row's filters leave of it.
#pragma once

#include "shard/backend/cuda/kernels/portable.cuh"
#include "shard/backend/cuda/sampling.h"
#include "shard/sampling/philox.h"

namespace penstock::shard::cuda {

constexpr std::uint32_t kNobody = 0xffffffffu;
constexpr std::uint32_t kMostCandidates = 2048;

// A token and what it is held against the others for.
struct Score {
  double value;
  std::uint32_t token;
};

__device__ inline Score FromLane(const Score& mine, int step) {
  return {__shfl_xor_sync(kAllLanes, mine.value, step),
          __shfl_xor_sync(kAllLanes, mine.token, step)};
}

// The larger value, of equals the lower token.
__device__ inline bool Beats(const Score& a, const Score& b) {
  return a.value != b.value ? a.value > b.value : a.token < b.token;
}
struct Better {
  __device__ Score operator()(const Score& a, const Score& b) const { return Beats(b, a) ? b : a; }
};

// Order of floats as order of integers; the two zeros are one.
__device__ inline std::uint32_t ToKey(float value) {
  value += 0.0f;
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ inline float FromKey(std::uint32_t key) {
  const std::uint32_t bits = (key & 0x80000000u) != 0 ? key & 0x7fffffffu : ~key;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The most probable tokens of a row, in shared memory: the filters pass over them many times.
struct Candidates {
  std::uint32_t count;
  std::uint32_t tokens[kMostCandidates];
  float values[kMostCandidates];  // after temperature
};

// Whether a filter other than `min_p` can exclude tokens of the row.
__device__ inline bool IsFiltered(const SampleRow& params, std::uint32_t width) {
  return (params.top_k > 0 && params.top_k < width) || params.top_p < 1.0f;
}

// One row after temperature, and what the filters leave of it.
struct Survivors {
  const float* logits;
  std::uint32_t width;
  float temperature;
  float maximum;                  // after temperature
  float least = -INFINITY;        // values below are not drawn
  std::uint32_t border = 0;       // keys below are out
  std::uint32_t limit = kNobody;  // at the border, tokens from here on are out
  // Null until it is known that nothing else can be left.
  const Candidates* candidates = nullptr;

  __device__ float At(std::uint32_t token) const { return logits[token] / temperature; }
  __device__ bool Holds(std::uint32_t token, float value) const {
    if (value == -INFINITY) return false;
    const std::uint32_t key = ToKey(value);
    return key > border || (key == border && token < limit);
  }

  // body(token, value) for the thread's share of what is left of [begin, end).
  template <class Body>
  __device__ void ForEachOf(std::uint32_t begin, std::uint32_t end, Body body) const {
#pragma unroll 4
    for (std::uint32_t token = begin + threadIdx.x; token < end; token += blockDim.x) {
      const float value = At(token);
      if (Holds(token, value)) body(token, value);
    }
  }

  // The same of all that is left.
  template <class Body>
  __device__ void ForEach(Body body) const {
    if (candidates == nullptr) return ForEachOf(0, width, body);
    for (std::uint32_t i = threadIdx.x; i < candidates->count; i += blockDim.x) {
      const std::uint32_t token = candidates->tokens[i];
      if (Holds(token, candidates->values[i])) body(token, candidates->values[i]);
    }
  }

  // The sum over the block of body(token, value) over what is left.
  template <class T, class Body>
  __device__ T SumOf(Body body) const {
    T sum = 0;
    ForEach([&](std::uint32_t token, float value) { sum += body(token, value); });
    return BlockReduce(sum, Sum{});
  }

  __device__ double Mass(float value) const { return expf(value - maximum); }
  // For log-probabilities.
  __device__ double ExactMass(float value) const {
    return value < least ? 0.0 : exp(static_cast<double>(value) - maximum);
  }

  // What the draw holds against the others; nothing for tokens below `least`.
  __device__ Score Drawn(const SampleRow& params, std::uint32_t token, float value) const {
    if (value < least) return {-1.0, kNobody};
    TokenNoise noise(params.seed, params.sibling, params.position);
    return {Mass(value) / -log(noise.Uniform(token)), token};
  }
};

// The row before and after temperature; `best` is its largest logit.
__device__ inline Survivors WholeRow(const float* logits, std::uint32_t width, float best) {
  return {logits, width, 1.0f, best};
}
__device__ inline Survivors AfterTemperature(const SampleRow& params, const float* logits,
                                             std::uint32_t width, float best) {
  Survivors row = {logits, width, params.temperature, best / params.temperature};
  if (params.min_p > 0) row.least = row.maximum + logf(params.min_p);
  return row;
}

}  // namespace penstock::shard::cuda
