#include "tools/make-model/random_values.h"

#include <cstring>

#include "shard/weights/convert.h"

namespace penstock::make_model {
namespace {

constexpr std::size_t kTableSize = 65536;

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t Mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Sums of twelve uniform values (Irwin–Hall): mean 0, variance 1, within ±6.
const std::vector<float>& Normals() {
  static const auto* normals = [] {
    auto* values = new std::vector<float>(kTableSize);
    std::uint64_t state = 12;
    for (float& value : *values) {
      std::int32_t sum = -6 * 65536;
      for (int i = 0; i < 3; ++i) {
        const std::uint64_t bits = Mix(state);
        for (int shift = 0; shift < 64; shift += 16) {
          sum += static_cast<std::int32_t>((bits >> shift) & 0xffff);
        }
      }
      value = static_cast<float>(sum) / 65536.0f;
    }
    return values;
  }();
  return *normals;
}

}  // namespace

RandomValues::RandomValues(std::uint64_t seed, std::string_view tensor, float mean, float scale,
                           DType dtype)
    : dtype_(dtype), state_(seed), table_(kTableSize * DTypeBytes(dtype)) {
  for (unsigned char c : tensor) state_ = Mix(state_) ^ c;
  std::vector<float> values = Normals();
  for (float& value : values) value = mean + scale * value;
  shard::ConvertElements(values.data(), DType::kFloat32, table_.data(), dtype, kTableSize);
}

void RandomValues::Fill(std::span<std::byte> out) {
  const std::size_t size = DTypeBytes(dtype_);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < out.size() / size; ++i) {
    bits = i % 4 == 0 ? Mix(state_) : bits >> 16;
    std::memcpy(out.data() + i * size, table_.data() + (bits & 0xffff) * size, size);
  }
}

}  // namespace penstock::make_model
