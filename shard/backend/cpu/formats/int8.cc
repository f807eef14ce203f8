#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "shard/backend/cpu/formats/formats.h"

namespace penstock::shard::cpu {
namespace {

float LargestOf(const float* values, std::size_t count) {
  float lanes[16] = {};  // several chains of comparisons
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      const float size = std::fabs(values[i + j]);
      lanes[j] = size > lanes[j] ? size : lanes[j];
    }
  }
  for (; i < count; ++i) lanes[0] = std::max(lanes[0], std::fabs(values[i]));
  return *std::max_element(lanes, lanes + 16);
}

// |x| <= 127, rounded to nearest, ties to even: adding 1.5 * 2^23 leaves the integer in the last
// bits.
std::uint8_t BiasedInt8(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x + 12582912.0f);
  return static_cast<std::uint8_t>(bits + 128u);
}

class Int8 final : public WeightFormat {
 public:
  FormatId id() const override { return FormatId::kInt8; }
  std::string_view name() const override { return "int8"; }
  std::string_view backend_suffix() const override { return "/int8"; }
  std::string_view Needs() const override { return ""; }

  std::size_t PanelBytes(const PanelShape& shape) const override {
    return shape.columns * shape.Steps() * shape.pack;
  }
  bool has_column_scales() const override { return true; }

  bool PackPanel(const PanelSource& rows, const PanelShape& shape, const FormatKernels&,
                 const PanelMemory& panel, Overflow&) const override {
    auto* out = reinterpret_cast<std::uint8_t*>(panel.data);
    std::vector<float> row(shape.Steps() * kInt8Pack, 0.0f);
    for (std::size_t c = 0; c < shape.columns; ++c) {
      if (rows[c] == nullptr) {
        std::fill(row.begin(), row.end(), 0.0f);
      } else {
        WidenRow(rows[c], shape.dtype, shape.inner, row.data());
      }
      const float largest = LargestOf(row.data(), shape.inner);
      const float inverse = largest > 0 ? 127.0f / largest : 0.0f;
      panel.scales[c] = largest / 127.0f;
      for (std::size_t step = 0; step < shape.Steps(); ++step) {
        std::uint8_t* to = out + (step * shape.columns + c) * kInt8Pack;
        for (std::size_t i = 0; i < kInt8Pack; ++i) {
          to[i] = BiasedInt8(row[step * kInt8Pack + i] * inverse);
        }
      }
    }
    return true;
  }
  void UnpackColumn(const PanelView& panel, const PanelShape& shape, std::size_t column,
                    float* out) const override {
    for (std::size_t k = 0; k < shape.inner; ++k) {
      const std::size_t at = (k / kInt8Pack * shape.columns + column) * kInt8Pack + k % kInt8Pack;
      const int q = std::to_integer<int>(panel.data[at]) - 128;
      out[k] = static_cast<float>(q) * panel.scales[column];
    }
  }
};

}  // namespace

const WeightFormat& Int8Format() {
  static const Int8 format;
  return format;
}

}  // namespace penstock::shard::cpu
