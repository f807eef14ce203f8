// The sampler. Several blocks share a row, each with a part of fixed size, so that one row of 128k
// tokens keeps many multiprocessors busy, and what is added up in which order does not depend on
// how many rows there are:
//
//   Process  a block per row: biases, penalties and masks
//   Look     a block per part: its largest logit
//   Weigh    a block per part: its mass, its draw where nothing is filtered, its likely candidates
//   Gather   a block per part: candidates into the row's list
//   Draw     a block per row: filters and the draw among candidates, or the results of the parts
//
// Rows that do not need a kernel's work leave it at once.
#include "shard/backend/cuda/kernels/sample_row.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::uint32_t kPartTokens = 4096;
// Candidates are the tokens within one of these distances of the largest value: the largest for
// which there is room.
constexpr int kTries = 3;
__device__ inline float Distance(int i) { return i == 0 ? 20.0f : i == 1 ? 10.0f : 5.0f; }

struct Part {
  Score best;         // by logit
  Score drawn;        // where nothing is filtered
  double mass;        // after temperature
  double exact_mass;  // for the log-probability
  std::uint32_t nans;
  std::uint32_t near[kTries];
};

__host__ __device__ inline std::uint32_t PartsOf(std::uint32_t width) {
  return (width + kPartTokens - 1) / kPartTokens;
}

// The scratch memory: parts of all rows, then the lists of candidates of all rows.
struct List {
  std::uint32_t tokens[kMostCandidates];
  float values[kMostCandidates];
};
__host__ __device__ inline std::uint64_t PartBytes(std::uint32_t rows, std::uint32_t width) {
  return std::uint64_t{rows} * PartsOf(width) * sizeof(Part);
}
__device__ inline Part* PartsOfRow(const SampleArgs& args) {
  return static_cast<Part*>(args.scratch) + std::uint64_t{blockIdx.x} * PartsOf(args.width);
}
__device__ inline List& ListOfRow(const SampleArgs& args) {
  void* const lists = static_cast<char*>(args.scratch) + PartBytes(args.row_count, args.width);
  return static_cast<List*>(lists)[blockIdx.x];
}
__device__ inline const float* LogitsOfRow(const SampleArgs& args) {
  return args.logits + std::uint64_t{blockIdx.x} * args.width;
}

// The tokens of a block's part.
__device__ inline std::uint32_t Begin() { return blockIdx.y * kPartTokens; }
__device__ inline std::uint32_t End(std::uint32_t width) {
  return width - Begin() < kPartTokens ? width : Begin() + kPartTokens;
}

// The sum over the row's parts of what `field` gives, on every thread.
template <class Field>
__device__ auto SumOfParts(const Part* parts, std::uint32_t count, Field field) {
  decltype(field(parts[0])) sum = 0;
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) sum += field(parts[i]);
  return BlockReduce(sum, Sum{});
}

template <class Field>
__device__ Score BestOfParts(const Part* parts, std::uint32_t count, Field field) {
  Score best = {-INFINITY, kNobody};
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    best = Better{}(best, field(parts[i]));
  }
  return BlockReduce(best, Better{});
}

__device__ Score LargestOfRow(const Part* parts, std::uint32_t count) {
  return BestOfParts(parts, count, [](const Part& part) { return part.best; });
}

// Which distance the row's candidates lie within; kTries if there is room for none.
__device__ int FittingTry(const Part* parts, std::uint32_t count) {
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t near = SumOfParts(parts, count, [i](const Part& p) { return p.near[i]; });
    if (near <= kMostCandidates) return i;
  }
  return kTries;
}

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
    return row.SumOf<std::uint32_t>(
               [&](std::uint32_t, float value) { return ToKey(value) >= key ? 1u : 0u; }) >= k;
  });
  row.border = border;
}

// The smallest set of the most probable with mass >= p of `total`; ties are split by token id.
__device__ void TopP(float p, double total, const Candidates& candidates, Survivors& row) {
  const auto mass_from = [&](std::uint32_t key) {
    return row.SumOf<double>(
        [&](std::uint32_t, float value) { return ToKey(value) >= key ? row.Mass(value) : 0.0; });
  };
  const double wanted = static_cast<double>(p) * total;
  if (row.candidates == nullptr) {
    row.candidates = &candidates;
    if (mass_from(0) < wanted) row.candidates = nullptr;
  }
  const std::uint32_t border =
      Largest([&](std::uint32_t key) { return key == 0 || mass_from(key) >= wanted; });
  const double above = mass_from(border + 1);
  const double each = row.Mass(FromKey(border));
  const auto ties = [&](std::uint32_t below) {
    return row.SumOf<std::uint32_t>([&](std::uint32_t token, float value) {
      return ToKey(value) == border && token < below ? 1u : 0u;
    });
  };
  const double needed = ceil((wanted - above) / each);
  if (ties(kNobody) > needed) {
    row.limit =
        Largest([&](std::uint32_t below) { return below <= row.width && ties(below) < needed; }) +
        1;
  }
  row.border = border;
}

__device__ void Penalize(const SampleRow& params, std::uint32_t generated, float& logit) {
  logit = logit < 0 ? logit * params.repetition_penalty : logit / params.repetition_penalty;
  if (generated == 0) return;
  logit = MinusProduct(logit, params.frequency_penalty, static_cast<float>(generated));
  logit -= params.presence_penalty;
}

__global__ void __launch_bounds__(kThreads) ProcessKernel(SampleArgs args) {
  WaitForEarlierKernels();
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

__global__ void __launch_bounds__(kThreads) LookKernel(SampleArgs args) {
  WaitForEarlierKernels();
  const float* const logits = LogitsOfRow(args);
  const std::uint32_t end = End(args.width);
  Score best = {-INFINITY, kNobody};
  std::uint32_t nans = 0;
#pragma unroll 8
  for (std::uint32_t token = Begin() + threadIdx.x; token < end; token += kThreads) {
    const Score mine = {logits[token], token};
    if (mine.value != mine.value) ++nans;
    if (Beats(mine, best)) best = mine;
  }
  nans = BlockReduce(nans, Sum{});
  best = BlockReduce(best, Better{});
  if (threadIdx.x != 0) return;
  Part& part = PartsOfRow(args)[blockIdx.y];
  part.best = best;
  part.nans = nans;
}

// What the row's log-probability is held against.
__device__ bool IsOfRow(const SampleRow& params) {
  return params.logprob == TokenLogprob::kOfRow || params.do_sample == 0;
}

__global__ void __launch_bounds__(kThreads) WeighKernel(SampleArgs args) {
  WaitForEarlierKernels();
  const SampleRow& params = args.rows[blockIdx.x];
  const bool filtered = IsFiltered(params, args.width);
  const bool samples = params.do_sample != 0;
  const bool weighs = params.logprob != TokenLogprob::kNone && (IsOfRow(params) || !filtered);
  if (!samples && !weighs) return;
  Part* const parts = PartsOfRow(args);
  const float best = static_cast<float>(LargestOfRow(parts, PartsOf(args.width)).value);
  if (!(fabsf(best) < INFINITY)) return;
  const float* const logits = LogitsOfRow(args);
  const Survivors whole = WholeRow(logits, args.width, best);
  const Survivors row = samples ? AfterTemperature(params, logits, args.width, best) : whole;
  const std::uint32_t end = End(args.width);
  Part sums = {};
  sums.drawn = {-1.0, kNobody};
  if (samples) {
    row.ForEachOf(Begin(), end, [&](std::uint32_t token, float value) {
      if (!filtered) {
        sums.drawn = Better{}(sums.drawn, row.Drawn(params, token, value));
        return;
      }
      sums.mass += row.Mass(value);
#pragma unroll
      for (int i = 0; i < kTries; ++i) sums.near[i] += value >= row.maximum - Distance(i) ? 1 : 0;
    });
  }
  if (weighs) {
    const Survivors of = IsOfRow(params) ? whole : row;
    of.ForEachOf(Begin(), end,
                 [&](std::uint32_t, float value) { sums.exact_mass += of.ExactMass(value); });
  }
  const Score drawn = BlockReduce(sums.drawn, Better{});
  const double mass = BlockReduce(sums.mass, Sum{});
  const double exact_mass = BlockReduce(sums.exact_mass, Sum{});
  std::uint32_t near[kTries];
#pragma unroll
  for (int i = 0; i < kTries; ++i) near[i] = BlockReduce(sums.near[i], Sum{});
  if (threadIdx.x != 0) return;
  Part& part = parts[blockIdx.y];
  part.drawn = drawn;
  part.mass = mass;
  part.exact_mass = exact_mass;
#pragma unroll
  for (int i = 0; i < kTries; ++i) part.near[i] = near[i];
}

__global__ void __launch_bounds__(kThreads) GatherKernel(SampleArgs args) {
  WaitForEarlierKernels();
  const SampleRow& params = args.rows[blockIdx.x];
  if (params.do_sample == 0 || !IsFiltered(params, args.width)) return;
  const std::uint32_t count = PartsOf(args.width);
  const Part* const parts = PartsOfRow(args);
  const float best = static_cast<float>(LargestOfRow(parts, count).value);
  if (!(fabsf(best) < INFINITY)) return;
  const int tried = FittingTry(parts, count);
  if (tried == kTries) return;
  const float distance = Distance(tried);
  const std::uint32_t before =
      SumOfParts(parts, blockIdx.y, [tried](const Part& part) { return part.near[tried]; });
  const Survivors row = AfterTemperature(params, LogitsOfRow(args), args.width, best);
  const std::uint32_t end = End(args.width);
  std::uint32_t own = 0;
  row.ForEachOf(Begin(), end, [&](std::uint32_t, float value) {
    own += value >= row.maximum - distance ? 1 : 0;
  });
  std::uint32_t at = before + SumBefore(own);
  List& list = ListOfRow(args);
  row.ForEachOf(Begin(), end, [&](std::uint32_t token, float value) {
    if (value < row.maximum - distance) return;
    list.tokens[at] = token;
    list.values[at++] = value;
  });
}

// The row's candidates into shared memory; none if there is no room for those of any distance.
__device__ void Collect(const SampleArgs& args, const Part* parts, Candidates& candidates) {
  const std::uint32_t count = PartsOf(args.width);
  const int tried = FittingTry(parts, count);
  const std::uint32_t found =
      tried == kTries
          ? 0
          : SumOfParts(parts, count, [tried](const Part& part) { return part.near[tried]; });
  const List& list = ListOfRow(args);
  for (std::uint32_t i = threadIdx.x; i < found; i += blockDim.x) {
    candidates.tokens[i] = list.tokens[i];
    candidates.values[i] = list.values[i];
  }
  if (threadIdx.x == 0) candidates.count = found;
  __syncthreads();
}

// Leaves in `row` what top-k and top-p leave, and draws one of it.
__device__ std::uint32_t DrawFiltered(const SampleArgs& args, const Part* parts,
                                      Candidates& candidates, Survivors& row) {
  const SampleRow& params = args.rows[blockIdx.x];
  Collect(args, parts, candidates);
  TopK(params.top_k, candidates, row);
  if (params.top_p < 1.0f) {
    const double total =
        row.border == 0
            ? SumOfParts(parts, PartsOf(args.width), [](const Part& part) { return part.mass; })
            : row.SumOf<double>([&](std::uint32_t, float value) { return row.Mass(value); });
    TopP(params.top_p, total, candidates, row);
  }
  Score best = {-1.0, kNobody};
  row.ForEach([&](std::uint32_t token, float value) {
    best = Better{}(best, row.Drawn(params, token, value));
  });
  return BlockReduce(best, Better{}).token;
}

__global__ void __launch_bounds__(kThreads) DrawKernel(SampleArgs args) {
  WaitForEarlierKernels();
  __shared__ Candidates candidates;
  const SampleRow& params = args.rows[blockIdx.x];
  const float* const logits = LogitsOfRow(args);
  const Part* const parts = PartsOfRow(args);
  const std::uint32_t count = PartsOf(args.width);
  const std::uint32_t nans = SumOfParts(parts, count, [](const Part& part) { return part.nans; });
  const Score best = LargestOfRow(parts, count);
  if (nans > 0 || !(fabs(best.value) < INFINITY)) {
    if (threadIdx.x == 0) args.out[blockIdx.x] = -1;
    return;
  }
  const auto largest = static_cast<float>(best.value);
  const bool samples = params.do_sample != 0;
  const bool filtered = samples && IsFiltered(params, args.width);
  const Survivors whole = WholeRow(logits, args.width, largest);
  Survivors row = samples ? AfterTemperature(params, logits, args.width, largest) : whole;
  std::uint32_t sampled = best.token;
  if (filtered) {
    sampled = DrawFiltered(args, parts, candidates, row);
  } else if (samples) {
    sampled = BestOfParts(parts, count, [](const Part& part) { return part.drawn; }).token;
  }
  if (threadIdx.x == 0) args.out[blockIdx.x] = static_cast<std::int32_t>(sampled);
  if (params.logprob == TokenLogprob::kNone) return;
  const bool of_row = IsOfRow(params);
  const double mass =
      of_row || !filtered
          ? SumOfParts(parts, count, [](const Part& part) { return part.exact_mass; })
          : row.SumOf<double>([&](std::uint32_t, float value) { return row.ExactMass(value); });
  if (threadIdx.x != 0) return;
  const Survivors of = of_row ? whole : row;
  args.logprobs[blockIdx.x] = static_cast<float>(of.At(sampled) - (of.maximum + log(mass)));
}

}  // namespace

std::uint64_t SampleScratchBytes(std::uint32_t rows, std::uint32_t width) {
  return PartBytes(rows, width) + rows * sizeof(List);
}

absl::Status SampleRows(const SampleArgs& args, Stream stream) {
  if (args.row_count == 0) return absl::OkStatus();
  const dim3 parts(args.row_count, PartsOf(args.width));
  PENSTOCK_LAUNCH(ProcessKernel, args.row_count, kThreads, 0, stream, args);
  PENSTOCK_LAUNCH(LookKernel, parts, kThreads, 0, stream, args);
  PENSTOCK_LAUNCH(WeighKernel, parts, kThreads, 0, stream, args);
  PENSTOCK_LAUNCH(GatherKernel, parts, kThreads, 0, stream, args);
  PENSTOCK_LAUNCH(DrawKernel, args.row_count, kThreads, 0, stream, args);
  return LaunchStatus();
}

}  // namespace penstock::shard::cuda
