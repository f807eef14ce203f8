// The product of int8 weights for every instruction set (formats.h says how weights and activations
// are quantised). Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/format_kernels.h"

namespace penstock::shard::cpu {
namespace {

// For instruction sets without a dot product of bytes. Even and odd bytes become 16-bit integers,
// whose products are added in pairs without overflow. The integers of a row have 16 bits, too, in
// that order.
struct PairsOfInt8 {
  using Activation = std::byte;
  using Weight = std::uint8_t;
  static constexpr std::size_t kPack = kInt8Pack;
  static constexpr float kLargest = 127.0f;  // of a row's integers
  static constexpr std::size_t kLeft = 8;    // bytes of kPack integers of a row
  static constexpr int kParts = 1;
  static constexpr int kSpare = 6;
  struct Right {
    Ints even, odd;
  };
  static Right LoadRight(const Weight* from) {
    const Ints bytes = LoadInts(from);
    return {EvenBytes(bytes), OddBytes(bytes)};
  }
  static Ints Step(Ints sum, const std::byte* left, const Right& right) {
    std::int32_t pairs[2];
    __builtin_memcpy(pairs, left, sizeof pairs);
    sum = AddInts(sum, MultiplyPairs(right.even, FillInts(pairs[0])));
    return AddInts(sum, MultiplyPairs(right.odd, FillInts(pairs[1])));
  }
  static void StoreRow(std::byte* to, Ints values) { StoreByTwos(to, ToShorts(values)); }
};

}  // namespace
}  // namespace penstock::shard::cpu
