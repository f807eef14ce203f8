// The product of bfloat16 pairs on processors with AVX512_BF16. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {
namespace {

// Two bfloat16 products join a float32 sum in one instruction, in the processor's fixed order.
struct DotProduct {
  using Activation = std::uint16_t;
  using Weight = std::uint16_t;
  using Right = __m512i;
  static constexpr std::size_t kPack = 2;
  static constexpr std::size_t kLeft = kPack;
  static constexpr int kParts = 1;
  static constexpr int kSpare = 2;
  static Right LoadRight(const std::uint16_t* from) { return _mm512_loadu_si512(from); }
  static Vec Step(Vec sum, const std::uint16_t* left, Right right) {
    std::int32_t pair;
    __builtin_memcpy(&pair, left, sizeof pair);
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)),
                            reinterpret_cast<__m512bh>(right));
  }
};

}  // namespace
}  // namespace penstock::shard::cpu
