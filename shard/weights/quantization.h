// How matrices are kept in memory (--quantize). Part of a model as a rank computes it: it changes
// answers and memory, and ranks must agree.
#pragma once

#include <cstdint>
#include <string_view>

namespace penstock::shard {

enum class Quantization : std::uint8_t {
  kNone,  // in the dtype of the model
  kInt8,  // a byte per weight and a scale per output, made while loading
};

// Of the option and of /info; empty for kNone.
constexpr std::string_view QuantizationName(Quantization quantization) {
  return quantization == Quantization::kInt8 ? "int8" : "";
}

}  // namespace penstock::shard
