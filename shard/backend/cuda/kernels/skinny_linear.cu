// Products of few rows, as in decode: the time to read the weights bounds them. Each weight is read
// once, 16 bytes a lane, straight into the fragments of tensor cores.
//
// A block computes kOut columns of the output for all rows. Its warps share out in_width; each
// leaves a partial sum, and these are added in the order of the warps. The order of additions
// depends on in_width alone, so a row has the same bits whatever the number of rows.
//
// Lane l reads 8 weights of one row of `weight`, elements 8 (l%4) to 8 (l%4) + 7 of a step of 32,
// and the same elements of the input. A product of tensor cores takes two pairs of each; which pair
// takes which place in it does not matter, since both operands use the same places.
#include "common/status.h"
#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/tensor_core.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kOut = 16;   // columns of the output, rows of a fragment of weights
constexpr int kStep = 32;  // of in_width: four lanes with 8 elements each
constexpr int kInRows = 8;  // of a product

// What a lane has read of kSteps steps.
template <int kSteps, int kTiles>
struct Operands {
  Bytes16 weights[kSteps][2];  // rows l/4 and l/4 + 8
  Bytes16 in[kSteps][kTiles];  // rows l/4 of each tile of 8
};

template <int kTiles>
struct Place {
  const Bf16* weights[2];
  const Bf16* in[kTiles];  // null: no such row
  int end;                 // of the warp's steps
};

template <int kSteps, int kTiles>
__device__ void LoadWeights(const Place<kTiles>& place, int step, Operands<kSteps, kTiles>& to) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
    // After the warp's last step: its last weights once more, which meet zeros of the input.
    const int at = step + u < place.end ? step + u : place.end - 1;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      to.weights[u][half] = LoadOnce16(place.weights[half] + at * kStep);
    }
  }
}

template <int kSteps, int kTiles>
__device__ void LoadIn(const Place<kTiles>& place, int step, Operands<kSteps, kTiles>& to) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const bool there = place.in[tile] != nullptr && step + u < place.end;
      to.in[u][tile] =
          there ? *reinterpret_cast<const Bytes16*>(place.in[tile] + (step + u) * kStep)
                : Bytes16{};
    }
  }
}

template <int kSteps, int kTiles>
__device__ void MultiplyAll(const Operands<kSteps, kTiles>& operands, float (&sums)[kTiles][4]) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
      const std::uint32_t a[4] = {
          operands.weights[u][0].words[pair], operands.weights[u][1].words[pair],
          operands.weights[u][0].words[pair + 1], operands.weights[u][1].words[pair + 1]};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const Bytes16& in = operands.in[u][tile];
        MultiplyAdd(sums[tile], a, in.words[pair], in.words[pair + 1]);
      }
    }
  }
}

template <int kTiles>
__device__ Place<kTiles> PlaceOf(const LinearArgs& args, int warp, int lane, int& first) {
  Place<kTiles> place;
  const int steps = static_cast<int>(args.in_width) / kStep;
  const int of_warp = (steps + kWarps - 1) / kWarps;
  first = warp * of_warp;
  place.end = first + of_warp < steps ? first + of_warp : steps;
  const int at = lane % 4 * 8;
  const std::uint32_t last = args.out_width - 1;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::uint32_t row = blockIdx.x * kOut + half * 8 + lane / 4;
    place.weights[half] = static_cast<const Bf16*>(args.weight) +
                          std::uint64_t{row < last ? row : last} * args.in_width + at;
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const std::uint32_t row = tile * kInRows + lane / 4;
    place.in[tile] = row < args.rows ? static_cast<const Bf16*>(args.in) +
                                           std::uint64_t{row} * args.in_width + at
                                     : nullptr;
  }
  return place;
}

template <int kTiles>
__device__ void Finish(const LinearArgs& args, const float (*parts)[kOut][kTiles * kInRows + 1]) {
  for (int i = threadIdx.x; i < kOut * static_cast<int>(args.rows); i += kThreads) {
    const int row = i / kOut;
    const std::uint32_t column = blockIdx.x * kOut + i % kOut;
    if (column >= args.out_width) continue;
    float sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) sum += parts[warp][i % kOut][row];
    if (args.bias != nullptr) sum += ToFloat(static_cast<const Bf16*>(args.bias)[column]);
    Bf16* const out = static_cast<Bf16*>(args.out) + std::uint64_t{args.out_width} * row + column;
    if (args.accumulate) sum += ToFloat(*out);
    *out = FromFloat<Bf16>(sum);
  }
}

// Weights are loaded before the earlier kernels of the stream are complete: none of them writes
// weights.
template <int kSteps, int kTiles>
__global__ void __launch_bounds__(kThreads, 2) SkinnyLinearKernel(LinearArgs args) {
  __shared__ float parts[kWarps][kOut][kTiles * kInRows + 1];
  LetNextKernelBegin();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int step = 0;
  const Place<kTiles> place = PlaceOf<kTiles>(args, warp, lane, step);
  Operands<kSteps, kTiles> next;
  LoadWeights(place, step, next);
  WaitForEarlierKernels();
  LoadIn(place, step, next);
  float sums[kTiles][4] = {};
  while (step < place.end) {
    const Operands<kSteps, kTiles> now = next;
    step += kSteps;
    if (step < place.end) {
      LoadWeights(place, step, next);
      LoadIn(place, step, next);
    }
    MultiplyAll(now, sums);
  }
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      parts[warp][lane / 4 + i / 2 * 8][tile * kInRows + lane % 4 * 2 + i % 2] = sums[tile][i];
    }
  }
  __syncthreads();
  Finish<kTiles>(args, parts);
}

}  // namespace

bool IsSkinny(const LinearArgs& args, DType dtype) {
  return dtype == DType::kBFloat16 && args.rows <= kMostSkinnyRows && args.in_width % kStep == 0;
}

absl::Status SkinnyLinear(const LinearArgs& args, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  const std::uint32_t blocks = CeilDivide(args.out_width, kOut);
  if (args.rows <= kInRows) {
    PENSTOCK_LAUNCH((SkinnyLinearKernel<4, 1>), blocks, kThreads, 0, stream, args);
  } else if (args.rows <= 2 * kInRows) {
    PENSTOCK_LAUNCH((SkinnyLinearKernel<2, 2>), blocks, kThreads, 0, stream, args);
  } else {
    PENSTOCK_LAUNCH((SkinnyLinearKernel<2, 4>), blocks, kThreads, 0, stream, args);
  }
  return LaunchStatus();
}

}  // namespace penstock::shard::cuda
