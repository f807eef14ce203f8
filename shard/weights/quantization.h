// How matrices are stored in memory (--quantize). It changes answers and memory, so all ranks of a
// group must have the same.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::shard {

enum class Quantization : std::uint8_t {
  kNone,  // in the dtype of the model
  kInt8,  // a byte per weight and a scale per output, made while loading
};

// The name in the option and in /info; empty for kNone.
constexpr std::string_view QuantizationName(Quantization quantization) {
  return quantization == Quantization::kInt8 ? "int8" : "";
}

}  // namespace penstock::shard
