// Rows of bfloat16 weights to one byte per weight and a scale per row, and back.
#include "shard/backend/cuda/kernels/weight_forms.cuh"

#include <cmath>

#include "shard/backend/cuda/kernels/vectors.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPiece = 16;                   // weights that a thread takes at once
constexpr float kSmallestScale = 0x1p-100f;  // keeps expanded weights normal

struct Largest {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// The smallest power of two that is at least `value`.
__device__ float PowerOfTwo(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = (bits + 0x7fffffu) & 0xff800000u;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

template <WeightForm kForm>
__global__ void __launch_bounds__(kThreads) QuantizeKernel(FormArgs args) {
  WaitForEarlierKernels();
  const std::uint64_t row = blockIdx.x;
  const Bf16* const in = static_cast<const Bf16*>(args.plain) + row * args.width;
  auto* const out = static_cast<std::uint8_t*>(args.stored) + row * args.width;
  float largest = 0.0f;
  for (std::uint32_t i = threadIdx.x; i < args.width; i += kThreads) {
    largest = fmaxf(largest, fabsf(ToFloat(in[i])));
  }
  largest = BlockReduce(largest, Largest{});
  float scale;
  float inverse;
  if constexpr (kForm == WeightForm::kFp8) {
    scale = fmaxf(PowerOfTwo(largest / kLargestFp8), kSmallestScale);
    inverse = 1.0f / scale;
  } else {
    scale = largest / 127.0f;
    inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
  }
  if (threadIdx.x == 0) args.scales[row] = scale;
  for (std::uint32_t i = threadIdx.x; i < args.width; i += kThreads) {
    const float value = ToFloat(in[i]) * inverse;
    out[i] = kForm == WeightForm::kFp8 ? ToFp8(value)
                                       : static_cast<std::uint8_t>(static_cast<int>(rintf(value)));
  }
}

template <WeightForm kForm>
__global__ void __launch_bounds__(kThreads) ExpandKernel(FormArgs args) {
  WaitForEarlierKernels();
  const std::uint64_t piece = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t at = piece * kPiece;
  if (at >= std::uint64_t{args.rows} * args.width) return;
  const float scale = args.scales[at / args.width];
  const Bytes16 stored = LoadOnce16(static_cast<const std::uint8_t*>(args.stored) + at);
  float values[kPiece];
#pragma unroll
  for (int word = 0; word < 4; ++word) {
    std::uint32_t pairs[2];
    WidenFour<kForm>(stored.words[word], pairs);
    Bf16 four[4];
    memcpy(four, pairs, sizeof four);
#pragma unroll
    for (int i = 0; i < 4; ++i) values[word * 4 + i] = ToFloat(four[i]) * scale;
  }
  Bf16* const out = static_cast<Bf16*>(args.plain) + at;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float part[kWidest<Bf16>];
    memcpy(part, values + half * kWidest<Bf16>, sizeof part);
    Store(out + half * kWidest<Bf16>, part);
  }
}

}  // namespace

absl::Status QuantizeRows(const FormArgs& args, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  if (args.form == WeightForm::kFp8) {
    PENSTOCK_LAUNCH((QuantizeKernel<WeightForm::kFp8>), args.rows, kThreads, 0, stream, args);
  } else {
    PENSTOCK_LAUNCH((QuantizeKernel<WeightForm::kInt8>), args.rows, kThreads, 0, stream, args);
  }
  return LaunchStatus();
}

absl::Status ExpandRows(const FormArgs& args, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  const std::uint32_t blocks = CeilDivide(std::uint64_t{args.rows} * args.width, kThreads * kPiece);
  if (args.form == WeightForm::kFp8) {
    PENSTOCK_LAUNCH((ExpandKernel<WeightForm::kFp8>), blocks, kThreads, 0, stream, args);
  } else {
    PENSTOCK_LAUNCH((ExpandKernel<WeightForm::kInt8>), blocks, kThreads, 0, stream, args);
  }
  return LaunchStatus();
}

}  // namespace penstock::shard::cuda
