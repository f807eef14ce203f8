// The product of int8 weights on processors with AVX512_VNNI. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/kernels/step_row.h"

namespace penstock::shard::cpu {
namespace {

// One instruction adds four products of bytes to an integer sum. The integers, and so the bits, are
// those of PairsOfInt8.
struct FoursOfInt8 {
  using Activation = std::byte;
  using Weight = std::uint8_t;
  static constexpr std::size_t kPack = kInt8Pack;
  static constexpr float kLargest = 127.0f;
  static constexpr std::size_t kLeft = 4;  // bytes of kPack integers of a row
  static constexpr int kSpare = 2;
  static constexpr int kUnrolled = 4;
  PENSTOCK_STEP_ROW("vpdpbusd")
  static void StoreRow(std::byte* to, Ints values) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(values));
  }
};

}  // namespace
}  // namespace penstock::shard::cpu
