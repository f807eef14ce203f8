// How matrices are stored in memory (--quantize). It changes answers and memory, so all ranks of a
// group must have the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::shard {

enum class Quantization : std::uint8_t {
  kNone,  // in the dtype of the model
  kInt8,  // a byte per weight and a scale per output, made while loading
  kFp8,   // the same with 8-bit floats (e4m3)
  kInt4,  // 4 bits per weight, a scale and a zero point per 32 columns, made while loading
};

inline constexpr std::array<std::string_view, 4> kQuantizationNames = {"", "int8", "fp8", "int4"};

// Of 8 weights of kInt4, with their share of scale and zero point.
inline constexpr std::uint64_t kInt4Bits = 37;

// The name in the option and in /info; empty for kNone.
constexpr std::string_view QuantizationName(Quantization quantization) {
  return kQuantizationNames[static_cast<std::size_t>(quantization)];
}

// kNone for another name.
constexpr Quantization ParseQuantization(std::string_view name) {
  for (std::size_t i = 0; i < kQuantizationNames.size(); ++i) {
    if (kQuantizationNames[i] == name) return static_cast<Quantization>(i);
  }
  return Quantization::kNone;
}

}  // namespace penstock::shard
