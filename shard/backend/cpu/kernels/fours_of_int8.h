// The product of int8 weights on processors with AVX512_VNNI. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

// Four products of bytes join an integer sum in one instruction. The integers are those of
// PairsOfInt8, so the bits are the same.
struct FoursOfInt8 {
  using Activation = std::byte;
  using Weight = std::uint8_t;
  using Right = __m512i;
  static constexpr std::size_t kPack = kInt8Pack;
  static constexpr std::size_t kLeft = 4;  // bytes of kPack integers of a row
  static constexpr int kParts = 1;
  static constexpr int kSpare = 8;
  static Right LoadRight(const Weight* from) { return _mm512_loadu_si512(from); }
  static Ints Step(Ints sum, const std::byte* left, Right right) {
    std::int32_t four;
    __builtin_memcpy(&four, left, sizeof four);
    return _mm512_dpbusd_epi32(sum, right, _mm512_set1_epi32(four));
  }
  static void StoreRow(std::byte* to, Ints values) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(values));
  }
};

}  // namespace
}  // namespace penstock::shard::cpu
