#include <algorithm>

#include "shard/backend/cpu/formats/formats.h"

namespace penstock::shard::cpu {
namespace {

class Int16 final : public WeightFormat {
 public:
  FormatId id() const override { return FormatId::kInt16; }
  std::string_view name() const override { return "int16"; }
  std::string_view backend_suffix() const override { return "-int16"; }
  std::string_view Needs() const override {
    return "AVX512_VNNI with the instruction set avx512, which PENSTOCK_ISA=avx512 chooses";
  }

  std::size_t PanelBytes(const PanelShape& shape) const override {
    const std::size_t groups = (shape.inner + kIntegerGroup - 1) / kIntegerGroup;
    return shape.columns *
           (shape.Steps() * shape.pack * sizeof(std::int16_t) + groups * sizeof(float));
  }
  bool PackPanel(const PanelSource& rows, const PanelShape& shape, const FormatKernels& kernels,
                 const PanelMemory& panel, Overflow&) const override {
    kernels.pack_panel({rows.data(), shape.inner, panel.data});
    return true;
  }
  void UnpackColumn(const PanelView& panel, const PanelShape& shape, std::size_t column,
                    float* out) const override {
    const std::byte* group = panel.data;
    for (std::size_t first = 0; first < shape.inner; first += kIntegerGroup) {
      const std::size_t count = std::min(kIntegerGroup, shape.inner - first);
      const float scale = reinterpret_cast<const float*>(group)[column];
      group += shape.columns * sizeof(float);
      const auto* pairs = reinterpret_cast<const std::int16_t*>(group) + column * kInt16Pack;
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t at = k / kInt16Pack * shape.columns * kInt16Pack + k % kInt16Pack;
        out[first + k] = static_cast<float>(pairs[at]) * scale;
      }
      group += shape.columns * kIntegerGroup * sizeof(std::int16_t);
    }
  }
};

}  // namespace

const WeightFormat& Int16Format() {
  static const Int16 format;
  return format;
}

}  // namespace penstock::shard::cpu
