#include "shard/backend/cuda/kernels/portable.cuh"
#include "shard/backend/cuda/sampling.h"
#include "shard/sampling/philox.h"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kThreads = 512;
constexpr std::uint32_t kNobody = 0xffffffffu;
constexpr std::uint32_t kMostCandidates = 2048;

// The sum over the block on every thread, in a fixed order.
template <class T>
__device__ T BlockSum(T value) {
  __shared__ T of_threads[kThreads];
  __syncthreads();  // an earlier sum may still be read
  of_threads[threadIdx.x] = value;
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step) of_threads[threadIdx.x] += of_threads[threadIdx.x + step];
  }
  __syncthreads();
  return of_threads[0];
}

// The largest score of the block, of equals the one of the lowest token.
struct Score {
  double value;
  std::uint32_t token;
};

__device__ bool Beats(const Score& a, const Score& b) {
  return a.value != b.value ? a.value > b.value : a.token < b.token;
}

__device__ Score BlockBest(Score mine) {
  __shared__ Score of_threads[kThreads];
  __syncthreads();
  of_threads[threadIdx.x] = mine;
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step && Beats(of_threads[threadIdx.x + step], of_threads[threadIdx.x])) {
      of_threads[threadIdx.x] = of_threads[threadIdx.x + step];
    }
  }
  __syncthreads();
  return of_threads[0];
}

// Order of floats as order of integers; the two zeros are one.
__device__ std::uint32_t ToKey(float value) {
  value += 0.0f;
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ float FromKey(std::uint32_t key) {
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

// One row after temperature, and what the filters leave of it.
struct Survivors {
  const float* logits;
  std::uint32_t width;
  float temperature;
  float maximum;                  // after temperature
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

  // body(token, value) for the thread's share of what is left.
  template <class Body>
  __device__ void ForEach(Body body) const {
    if (candidates != nullptr) {
      for (std::uint32_t i = threadIdx.x; i < candidates->count; i += blockDim.x) {
        const std::uint32_t token = candidates->tokens[i];
        if (Holds(token, candidates->values[i])) body(token, candidates->values[i]);
      }
      return;
    }
#pragma unroll 4
    for (std::uint32_t token = threadIdx.x; token < width; token += blockDim.x) {
      const float value = At(token);
      if (Holds(token, value)) body(token, value);
    }
  }

  // The sum over the block of body(token, value) over what is left.
  template <class T, class Body>
  __device__ T Sum(Body body) const {
    T sum = 0;
    ForEach([&](std::uint32_t token, float value) { sum += body(token, value); });
    return BlockSum(sum);
  }

  __device__ double Mass(float value) const { return expf(value - maximum); }
};

// The sum of what threads before this one gave.
__device__ std::uint32_t SumBefore(std::uint32_t value) {
  __shared__ std::uint32_t sums[kThreads];
  __syncthreads();
  sums[threadIdx.x] = value;
  for (unsigned step = 1; step < kThreads; step *= 2) {
    __syncthreads();
    const std::uint32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
  }
  return sums[threadIdx.x] - value;
}

// All tokens within some distance of the largest, the largest distance for which there is room;
// none if there is for none. In an order that does not change from run to run.
__device__ void Collect(const Survivors& row, Candidates& candidates) {
  constexpr int kTries = 3;
  const float distances[kTries] = {20.0f, 10.0f, 5.0f};
  std::uint32_t own[kTries] = {};
  row.ForEach([&](std::uint32_t, float value) {
#pragma unroll
    for (int i = 0; i < kTries; ++i) own[i] += value >= row.maximum - distances[i] ? 1 : 0;
  });
  if (threadIdx.x == 0) candidates.count = 0;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t count = BlockSum(own[i]);
    if (count > kMostCandidates) continue;
    std::uint32_t at = SumBefore(own[i]);
    row.ForEach([&](std::uint32_t token, float value) {
      if (value < row.maximum - distances[i]) return;
      candidates.tokens[at] = token;
      candidates.values[at++] = value;
    });
    if (threadIdx.x == 0) candidates.count = count;
    break;
  }
  __syncthreads();
}

// The largest number for which `is_true` holds, which holds for 0 and, if for a number, for all
// below it.
template <class IsTrue>
__device__ std::uint32_t Largest(IsTrue is_true) {
  std::uint32_t found = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if (is_true(found | bit)) found |= bit;
  }
  return found;
}

// Keeps every token at least as probable as the k-th.
__device__ void TopK(std::uint32_t k, const Candidates& candidates, Survivors& row) {
  if (k == 0 || k >= row.width) return;
  if (candidates.count >= k) row.candidates = &candidates;
  const std::uint32_t border = Largest([&](std::uint32_t key) {
    return row.Sum<std::uint32_t>(
               [&](std::uint32_t, float value) { return ToKey(value) >= key ? 1u : 0u; }) >= k;
  });
  row.border = border;
}

// The smallest set of the most probable with mass >= p; ties are split by token id.
__device__ void TopP(float p, const Candidates& candidates, Survivors& row) {
  if (p >= 1.0f) return;
  const auto mass_from = [&](std::uint32_t key) {
    return row.Sum<double>(
        [&](std::uint32_t, float value) { return ToKey(value) >= key ? row.Mass(value) : 0.0; });
  };
  const double wanted = static_cast<double>(p) * mass_from(0);
  if (row.candidates == nullptr) {
    row.candidates = &candidates;
    if (mass_from(0) < wanted) row.candidates = nullptr;
  }
  const std::uint32_t border =
      Largest([&](std::uint32_t key) { return key == 0 || mass_from(key) >= wanted; });
  const double above = mass_from(border + 1);
  const double each = row.Mass(FromKey(border));
  const auto ties = [&](std::uint32_t below) {
    return row.Sum<std::uint32_t>([&](std::uint32_t token, float value) {
      return ToKey(value) == border && token < below ? 1u : 0u;
    });
  };
  const double needed = ceil((wanted - above) / each);
  row.limit =
      Largest([&](std::uint32_t below) { return below <= row.width && ties(below) < needed; }) + 1;
  row.border = border;
}

__device__ std::uint32_t Draw(const SampleRow& params, float least, const Survivors& row) {
  Score best = {-1.0, kNobody};
  row.ForEach([&](std::uint32_t token, float value) {
    if (value < least) return;
    TokenNoise noise(params.seed, params.sibling, params.position);
    const Score mine = {row.Mass(value) / -log(noise.Uniform(token)), token};
    if (Beats(mine, best)) best = mine;
  });
  return BlockBest(best).token;
}

__device__ void Penalize(const SampleRow& params, std::uint32_t generated, float& logit) {
  logit = logit < 0 ? logit * params.repetition_penalty : logit / params.repetition_penalty;
  if (generated == 0) return;
  logit -= params.frequency_penalty * static_cast<float>(generated);
  logit -= params.presence_penalty;
}

__global__ void ProcessKernel(SampleArgs args) {
  __shared__ std::uint32_t newest_is_listed;
  const SampleRow& params = args.rows[blockIdx.x];
  float* row = args.logits + std::uint64_t{blockIdx.x} * args.width;
  const auto in_row = [&](std::int32_t token) {
    return token >= 0 && static_cast<std::uint32_t>(token) < args.width;
  };
  const std::int32_t newest =
      params.newest < 0 || params.penalties == 0 ? -1 : args.out[params.newest];
  if (threadIdx.x == 0) newest_is_listed = 0;
  for (std::uint32_t i = threadIdx.x; i < params.bias_count; i += blockDim.x) {
    const TokenBias& bias = args.biases[params.first_bias + i];
    if (in_row(bias.token)) row[bias.token] += bias.bias;
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < params.seen_count; i += blockDim.x) {
    const SeenToken& seen = args.seen[params.first_seen + i];
    if (!in_row(seen.token)) continue;
    const bool again = seen.token == newest;
    if (again) newest_is_listed = 1;
    Penalize(params, seen.generated + (again ? 1 : 0), row[seen.token]);
  }
  __syncthreads();
  if (threadIdx.x == 0 && in_row(newest) && newest_is_listed == 0) {
    Penalize(params, 1, row[newest]);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < params.masked_count; i += blockDim.x) {
    const std::int32_t token = args.masked[params.first_masked + i];
    if (in_row(token)) row[token] = -INFINITY;
  }
}

// Of the token that was picked, over what is left and not below `least`.
__device__ float LogprobOf(std::uint32_t picked, float least, const Survivors& row) {
  const double mass = row.Sum<double>([&](std::uint32_t, float value) {
    return value < least ? 0.0 : exp(static_cast<double>(value) - row.maximum);
  });
  return static_cast<float>(row.At(picked) - (row.maximum + log(mass)));
}

__global__ void SampleKernel(SampleArgs args) {
  __shared__ Candidates candidates;
  const SampleRow& params = args.rows[blockIdx.x];
  const float* logits = args.logits + std::uint64_t{blockIdx.x} * args.width;
  Score best = {-INFINITY, kNobody};
  std::uint32_t nans = 0;
  for (std::uint32_t token = threadIdx.x; token < args.width; token += blockDim.x) {
    const Score mine = {logits[token], token};
    if (mine.value != mine.value) ++nans;
    if (Beats(mine, best)) best = mine;
  }
  nans = BlockSum(nans);
  best = BlockBest(best);
  if (nans > 0 || !(fabs(best.value) < INFINITY)) {
    if (threadIdx.x == 0) args.out[blockIdx.x] = -1;
    return;
  }
  std::uint32_t picked = best.token;
  float least = -INFINITY;
  const Survivors whole = {logits, args.width, 1.0f, static_cast<float>(best.value)};
  Survivors row = whole;
  if (params.do_sample != 0) {
    row.temperature = params.temperature;
    row.maximum /= params.temperature;
    if (params.top_k > 0 || params.top_p < 1.0f) Collect(row, candidates);
    TopK(params.top_k, candidates, row);
    TopP(params.top_p, candidates, row);
    if (params.min_p > 0) least = row.maximum + logf(params.min_p);
    picked = Draw(params, least, row);
  }
  if (threadIdx.x == 0) args.out[blockIdx.x] = static_cast<std::int32_t>(picked);
  if (params.logprob == PickLogprob::kNone) return;
  const bool of_row = params.logprob == PickLogprob::kOfRow;
  const float logprob = LogprobOf(picked, of_row ? -INFINITY : least, of_row ? whole : row);
  if (threadIdx.x == 0) args.logprobs[blockIdx.x] = logprob;
}

}  // namespace

absl::Status SampleRows(const SampleArgs& args, Stream stream) {
  if (args.row_count == 0) return absl::OkStatus();
  PENSTOCK_LAUNCH(ProcessKernel, args.row_count, kThreads, 0, stream, args);
  PENSTOCK_LAUNCH(SampleKernel, args.row_count, kThreads, 0, stream, args);
  return LaunchStatus();
}

}  // namespace penstock::shard::cuda
