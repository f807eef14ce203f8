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
  static constexpr std::size_t kPack = kInt8Pack;
  static constexpr float kLargest = 127.0f;
  static constexpr std::size_t kLeft = 4;  // bytes of kPack integers of a row
  static constexpr int kSpare = 2;
  static constexpr int kUnrolled = 4;
  // Compilers spill sums and copy them where each instruction is theirs to place.
  [[gnu::always_inline]] static void StepRow(Ints (&sums)[2], const std::byte* left,
                                             const Ints (&columns)[2]) {
    Ints row;
    __asm__ volatile(
        "vpbroadcastd %[left], %[row]\n\t"
        "vpdpbusd %[row], %[column0], %[sum0]\n\t"
        "vpdpbusd %[row], %[column1], %[sum1]"
        : [sum0] "+v"(sums[0]), [sum1] "+v"(sums[1]), [row] "=&v"(row)
        : [left] "m"(IntegersAt(left)), [column0] "v"(columns[0]), [column1] "v"(columns[1]));
  }
  [[gnu::always_inline]] static void StepRow(Ints (&sums)[4], const std::byte* left,
                                             const Ints (&columns)[4]) {
    Ints row;
    __asm__ volatile(
        "vpbroadcastd %[left], %[row]\n\t"
        "vpdpbusd %[row], %[column0], %[sum0]\n\t"
        "vpdpbusd %[row], %[column1], %[sum1]\n\t"
        "vpdpbusd %[row], %[column2], %[sum2]\n\t"
        "vpdpbusd %[row], %[column3], %[sum3]"
        : [sum0] "+v"(sums[0]), [sum1] "+v"(sums[1]), [sum2] "+v"(sums[2]), [sum3] "+v"(sums[3]),
          [row] "=&v"(row)
        : [left] "m"(IntegersAt(left)), [column0] "v"(columns[0]), [column1] "v"(columns[1]),
          [column2] "v"(columns[2]), [column3] "v"(columns[3]));
  }
  static void StoreRow(std::byte* to, Ints values) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(values));
  }
};

}  // namespace
}  // namespace penstock::shard::cpu
