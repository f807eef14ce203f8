// Products of few rows, as in decode: the time to read the weights bounds them. Each weight is read
// once, 16 bytes a lane, straight into the fragments of tensor cores.
//
// A block computes kOut columns of the weights' product for all rows. Its warps share out
// in_width; each leaves a partial sum, and these are added in the order of the warps. The order of
// additions depends on in_width alone, so a row has the same bits whatever the number of rows.
//
// Lane l reads 8 weights of one row of `weight`, elements 8 (l%4) to 8 (l%4) + 7 of a step of 32,
// and the same elements of the input. A product of tensor cores takes two pairs of each; which pair
// takes which place in it does not matter, since both operands use the same places.
//
// The first weights are loaded before the earlier kernels of the stream are complete, since none of
// them writes weights.
#include "shard/backend/cuda/kernels/skinny_parts.cuh"
#include "shard/backend/cuda/kernels/tensor_core.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr int kStep = SkinnyStep(WeightForm::kPlain);  // four lanes with 8 elements each
constexpr int kPiece = 8;                              // elements of 16 bytes

template <int kSteps>
using Weights = Bytes16[kSteps][2];  // rows l/4 and l/4 + 8
template <int kSteps, int kTiles>
using Inputs = Bytes16[kSteps][kTiles];  // rows l/4 of each tile of 8

// The range of steps of a warp, and the addresses that one of its threads reads.
template <int kTiles>
struct Place {
  int first, end;
  const Bf16* weights[2];
  const Bf16* in[kTiles];  // null: no such row
};

template <bool kGated, int kTiles>
__device__ Place<kTiles> PlaceOf(const SkinnyArgs& args) {
  const LinearArgs& linear = args.linear;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  Place<kTiles> place;
  const int steps = static_cast<int>(linear.in_width) / kStep;
  const int of_warp = (steps + kWarps - 1) / kWarps;
  place.first = static_cast<int>(threadIdx.x) / kWarp * of_warp;
  place.end = place.first + of_warp < steps ? place.first + of_warp : steps;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    place.weights[half] = static_cast<const Bf16*>(linear.weight) +
                          std::uint64_t{WeightRow<kGated>(linear, lane, half)} * linear.in_width +
                          lane % 4 * kPiece;
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const std::uint32_t row = tile * kInRows + lane / 4;
    place.in[tile] = row < linear.rows
                         ? static_cast<const Bf16*>(linear.in) +
                               std::uint64_t{row} * linear.in_width + lane % 4 * kPiece
                         : nullptr;
  }
  return place;
}

template <int kSteps, int kTiles>
__device__ void LoadWeights(const Place<kTiles>& place, int step, Weights<kSteps>& to) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
    // After the warp's last step: its last weights once more, which meet zeros of the input.
    const int at = step + u < place.end ? step + u : place.end - 1;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      to[u][half] = LoadOnce16(place.weights[half] + at * kStep);
    }
  }
}

template <int kSteps, int kTiles>
__device__ void LoadInputs(const Place<kTiles>& place, int step, Inputs<kSteps, kTiles>& to) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const bool there = place.in[tile] != nullptr && step + u < place.end;
      to[u][tile] = there ? *reinterpret_cast<const Bytes16*>(place.in[tile] + (step + u) * kStep)
                          : Bytes16{};
    }
  }
}

template <int kSteps, int kTiles>
__device__ void MultiplyAll(const Weights<kSteps>& weights, const Inputs<kSteps, kTiles>& in,
                            float (&sums)[kTiles][4]) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
      const std::uint32_t a[4] = {weights[u][0].words[pair], weights[u][1].words[pair],
                                  weights[u][0].words[pair + 1], weights[u][1].words[pair + 1]};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        MultiplyAdd(sums[tile], a, in[u][tile].words[pair], in[u][tile].words[pair + 1]);
      }
    }
  }
}

template <int kSteps, int kTiles, bool kGated>
__global__ void __launch_bounds__(kThreads, 2) SkinnyLinearKernel(SkinnyArgs args) {
  __shared__ Parts<kTiles> parts;
  const Place<kTiles> place = PlaceOf<kGated, kTiles>(args);
  Weights<kSteps> next;
  Inputs<kSteps, kTiles> next_in;
  if (place.first < place.end) LoadWeights<kSteps>(place, place.first, next);
  WaitForEarlierKernels();
  LoadInputs<kSteps>(place, place.first, next_in);
  float sums[kTiles][4] = {};
  for (int step = place.first; step < place.end;) {
    Weights<kSteps> now;
    Inputs<kSteps, kTiles> now_in;
    memcpy(now, next, sizeof now);
    memcpy(now_in, next_in, sizeof now_in);
    step += kSteps;
    if (step < place.end) {
      LoadWeights<kSteps>(place, step, next);
      LoadInputs<kSteps>(place, step, next_in);
    }
    MultiplyAll<kSteps, kTiles>(now, now_in, sums);
  }
  LetNextKernelBegin();
  KeepSums<kTiles>(sums, parts);
  __syncthreads();
  Finish<kGated, kTiles>(args, parts);
}

template <bool kGated>
absl::Status LaunchFor(const SkinnyArgs& args, Stream stream) {
  const std::uint32_t blocks = BlocksOf<kGated>(args);
  if (args.linear.rows <= kInRows) {
    PENSTOCK_LAUNCH((SkinnyLinearKernel<4, 1, kGated>), blocks, kThreads, 0, stream, args);
  } else if (args.linear.rows <= 2 * kInRows) {
    PENSTOCK_LAUNCH((SkinnyLinearKernel<2, 2, kGated>), blocks, kThreads, 0, stream, args);
  } else {
    PENSTOCK_LAUNCH((SkinnyLinearKernel<1, 4, kGated>), blocks, kThreads, 0, stream, args);
  }
  return LaunchStatus();
}

}  // namespace

absl::Status SkinnyLinear(const SkinnyArgs& args, Stream stream) {
  if (args.linear.rows == 0) return absl::OkStatus();
  if (args.linear.form != WeightForm::kPlain) return SkinnyQuantizedLinear(args, stream);
  return args.gated ? LaunchFor<true>(args, stream) : LaunchFor<false>(args, stream);
}

}  // namespace penstock::shard::cuda
