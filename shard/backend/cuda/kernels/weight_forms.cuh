// Values of one byte, of weights and of K and V. As bfloat16 they are exact: four of a word become
// two words of pairs.
#pragma once

#include <cmath>

#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/tensor_core.cuh"

namespace penstock::shard::cuda {

// The sign and the seven bits after it take their places in a bfloat16 whose exponent is too small
// by 120, the difference of the biases. A product with 2^120 corrects it, for subnormal values too.
// The code of NaN gives 480.
__device__ inline std::uint32_t WidenFp8(std::uint32_t bytes_and_signs) {
  return MultiplyPairs((bytes_and_signs << 4) & 0x87f087f0u, 0x7b807b80u);
}

// 0x43 before the lower seven bits is 128 more than these. Before the sign bit alone it is 128, or
// 256 if the sign is set. Their difference is the value.
__device__ inline std::uint32_t WidenInt8(std::uint32_t bytes_after_0x43) {
  return SubtractPairs(bytes_after_0x43 & 0xff7fff7fu, bytes_after_0x43 & 0xff80ff80u);
}

template <WeightForm kForm>
__device__ void WidenFour(std::uint32_t bytes, std::uint32_t (&pairs)[2]) {
  static_assert(kForm != WeightForm::kPlain);
  if constexpr (kForm == WeightForm::kFp8) {
    pairs[0] = WidenFp8(PickBytes(bytes, bytes, 0x9180u));
    pairs[1] = WidenFp8(PickBytes(bytes, bytes, 0xb3a2u));
  } else {
    pairs[0] = WidenInt8(PickBytes(bytes, 0x43434343u, 0x4140u));
    pairs[1] = WidenInt8(PickBytes(bytes, 0x43434343u, 0x4342u));
  }
}

constexpr float kLargestFp8 = 448.0f;

// To nearest, ties to even. A larger value becomes the largest, NaN stays NaN.
__device__ inline std::uint8_t ToFp8(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const std::uint32_t sign = bits >> 31 << 7;
  bits &= 0x7fffffffu;
  const float size = fabsf(value);
  if (value != value) return 0x7f;
  if (size >= kLargestFp8) return static_cast<std::uint8_t>(sign | 0x7e);
  // Below 2^-6 values are multiples of 2^-9.
  const std::uint32_t code = size < 0x1p-6f
                                 ? static_cast<std::uint32_t>(rintf(size * 0x1p9f))
                                 : ((bits + 0x7ffffu + (bits >> 20 & 1)) >> 20) - ((127 - 7) << 3);
  return static_cast<std::uint8_t>(sign | code);
}

// Elements of K or V, which are of type T before.
template <int kCount, class T>
__device__ void StoreFp8(std::uint8_t* cache, const float (&values)[kCount]) {
  std::uint8_t codes[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) codes[i] = ToFp8(Rounded<T>(values[i]));
  if constexpr (kCount == 8) {
    std::uint64_t bytes;
    memcpy(&bytes, codes, sizeof bytes);
    *reinterpret_cast<std::uint64_t*>(cache) = bytes;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) cache[i] = codes[i];
  }
}

}  // namespace penstock::shard::cuda
