// Products of few rows with weights of one byte. It works as skinny_linear.cu. A thread loads 16
// bytes, which are 16 weights here, so four threads take 64 columns in a step. Weights become
// bfloat16 in registers without loss. The scale of a row of weights multiplies its sum at the end.
// The order of additions depends on in_width alone.
//
// Inputs are loaded one round before they are needed and not two, as the weights are: they come
// from the caches, and registers for more weights on their way are worth more.
#include "shard/backend/cuda/kernels/skinny_parts.cuh"
#include "shard/backend/cuda/kernels/tensor_core.cuh"
#include "shard/backend/cuda/kernels/weight_forms.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr int kStep = SkinnyStep(WeightForm::kFp8);
constexpr int kPiece = 16;             // weights of 16 bytes
constexpr int kInPiece = 8;            // inputs of 16 bytes
constexpr int kProducts = kPiece / 4;  // of a step: each takes four elements of a lane
constexpr int kInPieces = kPiece / kInPiece;

template <int kSteps>
using Weights = Bytes16[kSteps][2];  // rows l/4 and l/4 + 8
template <int kSteps, int kTiles>
using Inputs = Bytes16[kSteps][kTiles][kInPieces];  // row l/4 of each tile of 8

// The range of steps of a warp, and the addresses that one of its threads reads.
struct Place {
  int first, end;
  const std::uint8_t* weights[2];
  const Bf16* in;             // of the first tile
  std::uint32_t tile_stride;  // elements
  int rows;                   // from the lane's row of the first tile on
};

template <bool kGated>
__device__ Place PlaceOf(const LinearArgs& linear) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  Place place;
  const int steps = static_cast<int>(linear.in_width) / kStep;
  const int of_warp = (steps + kWarps - 1) / kWarps;
  place.first = static_cast<int>(threadIdx.x) / kWarp * of_warp;
  place.end = place.first + of_warp < steps ? place.first + of_warp : steps;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    place.weights[half] = static_cast<const std::uint8_t*>(linear.weight) +
                          std::uint64_t{WeightRow<kGated>(linear, lane, half)} * linear.in_width +
                          lane % 4 * kPiece;
  }
  place.rows = static_cast<int>(linear.rows) - lane / 4;
  place.in = static_cast<const Bf16*>(linear.in) + std::uint64_t(lane / 4) * linear.in_width +
             lane % 4 * kPiece;
  place.tile_stride = kInRows * linear.in_width;
  return place;
}

template <int kSteps>
__device__ void LoadWeights(const Place& place, int step, Weights<kSteps>& to) {
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
__device__ void LoadInputs(const Place& place, int step, Inputs<kSteps, kTiles>& to) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const bool there = tile * kInRows < place.rows && step + u < place.end;
      const Bf16* const from =
          place.in + std::uint64_t{place.tile_stride} * tile + (step + u) * kStep;
#pragma unroll
      for (int piece = 0; piece < kInPieces; ++piece) {
        to[u][tile][piece] =
            there ? *reinterpret_cast<const Bytes16*>(from + piece * kInPiece) : Bytes16{};
      }
    }
  }
}

template <WeightForm kForm, int kSteps, int kTiles>
__device__ void MultiplyAll(const Weights<kSteps>& weights, const Inputs<kSteps, kTiles>& in,
                            float (&sums)[kTiles][4]) {
#pragma unroll
  for (int u = 0; u < kSteps; ++u) {
#pragma unroll
    for (int product = 0; product < kProducts; ++product) {
      std::uint32_t upper[2];
      std::uint32_t lower[2];
      WidenFour<kForm>(weights[u][0].words[product], upper);
      WidenFour<kForm>(weights[u][1].words[product], lower);
      const std::uint32_t a[4] = {upper[0], lower[0], upper[1], lower[1]};
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const Bytes16& piece = in[u][tile][product / 2];
        MultiplyAdd(sums[tile], a, piece.words[product % 2 * 2], piece.words[product % 2 * 2 + 1]);
      }
    }
  }
}

template <WeightForm kForm, int kSteps, int kTiles, bool kGated>
__global__ void __launch_bounds__(kThreads, 2) QuantizedLinearKernel(SkinnyArgs args) {
  __shared__ Parts<kTiles> parts;
  const Place place = PlaceOf<kGated>(args.linear);
  Weights<kSteps> next;
  if (place.first < place.end) LoadWeights<kSteps>(place, place.first, next);
  WaitForEarlierKernels();
  float sums[kTiles][4] = {};
  for (int step = place.first; step < place.end;) {
    Inputs<kSteps, kTiles> in;
    LoadInputs<kSteps, kTiles>(place, step, in);
    Weights<kSteps> now;
    memcpy(now, next, sizeof now);
    step += kSteps;
    if (step < place.end) LoadWeights<kSteps>(place, step, next);
    MultiplyAll<kForm, kSteps, kTiles>(now, in, sums);
  }
  LetNextKernelBegin();
  KeepSums<kTiles>(sums, parts);
  __syncthreads();
  Finish<kGated, kTiles>(args, parts);
}

template <WeightForm kForm, bool kGated>
absl::Status LaunchFor(const SkinnyArgs& args, Stream stream) {
  const std::uint32_t blocks = BlocksOf<kGated>(args);
  if (args.linear.rows <= kInRows) {
    PENSTOCK_LAUNCH((QuantizedLinearKernel<kForm, 4, 1, kGated>), blocks, kThreads, 0, stream,
                    args);
  } else if (args.linear.rows <= 2 * kInRows) {
    PENSTOCK_LAUNCH((QuantizedLinearKernel<kForm, 2, 2, kGated>), blocks, kThreads, 0, stream,
                    args);
  } else if (args.linear.rows <= 4 * kInRows) {
    PENSTOCK_LAUNCH((QuantizedLinearKernel<kForm, 1, 4, kGated>), blocks, kThreads, 0, stream,
                    args);
  } else {
    PENSTOCK_LAUNCH((QuantizedLinearKernel<kForm, 1, 8, kGated>), blocks, kThreads, 0, stream,
                    args);
  }
  return LaunchStatus();
}

}  // namespace

absl::Status SkinnyQuantizedLinear(const SkinnyArgs& args, Stream stream) {
  if (args.linear.form == WeightForm::kFp8) {
    return args.gated ? LaunchFor<WeightForm::kFp8, true>(args, stream)
                      : LaunchFor<WeightForm::kFp8, false>(args, stream);
  }
  return args.gated ? LaunchFor<WeightForm::kInt8, true>(args, stream)
                    : LaunchFor<WeightForm::kInt8, false>(args, stream);
}

}  // namespace penstock::shard::cuda
