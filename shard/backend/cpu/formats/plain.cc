#include <algorithm>
#include <cstring>

#include "shard/backend/cpu/formats/formats.h"
#include "shard/backend/cpu/formats/transpose.h"

namespace penstock::shard::cpu {
namespace {

// The steps of one column, one by one.
void PackColumn(const std::byte* row, const PanelShape& shape, std::size_t first, std::size_t count,
                std::byte* out) {
  const std::size_t row_bytes = row == nullptr ? 0 : shape.inner * DTypeBytes(shape.dtype);
  for (std::size_t u = first; u < first + count; ++u) {
    const std::size_t bytes = std::min(kUnit, row_bytes - std::min(row_bytes, u * kUnit));
    std::memset(out, 0, kUnit);
    if (bytes > 0) std::memcpy(out, row + u * kUnit, bytes);
    out += shape.columns * kUnit;
  }
}

class Plain final : public WeightFormat {
 public:
  FormatId id() const override { return FormatId::kPlain; }
  std::string_view name() const override { return "plain"; }
  std::string_view backend_suffix() const override { return ""; }
  std::string_view Needs() const override { return ""; }

  std::size_t PanelBytes(const PanelShape& shape) const override {
    return shape.columns * shape.Steps() * shape.pack * DTypeBytes(shape.dtype);
  }
  bool PackPanel(const PanelSource& rows, const PanelShape& shape, const FormatKernels&,
                 const PanelMemory& out, Overflow&) const override {
    PackPlainSteps(rows, shape, 0, shape.Steps(), out.data);
    return true;
  }
  void UnpackColumn(const PanelView& panel, const PanelShape& shape, std::size_t column,
                    float* out) const override {
    const std::size_t pack = shape.pack;
    for (std::size_t k = 0; k < shape.inner; ++k) {
      const std::size_t at = (k / pack * shape.columns + column) * pack + k % pack;
      out[k] = ReadElement(panel.data, at, shape.dtype);
    }
  }
};

}  // namespace

// Squares of units; a unit is a step of one column.
void PackPlainSteps(const PanelSource& rows, const PanelShape& shape, std::size_t first,
                    std::size_t count, std::byte* out) {
  const std::size_t columns = shape.columns;
  const std::size_t last = first + count;
  const std::size_t full_units = shape.inner * DTypeBytes(shape.dtype) / kUnit;
  // The end of the units that squares cover.
  const std::size_t whole = std::max(first, std::min(last, full_units) / kSquare * kSquare);
  const auto squares = [&](std::size_t c) {  // whether a square's columns are all there
    return c + kSquare <= columns && std::count(&rows[c], &rows[c] + kSquare, nullptr) == 0;
  };
  // Strips of one cache line of each row: few rows at a time, and output that stays in the cache.
  constexpr std::size_t kStrip = 64 / kUnit;
  for (std::size_t strip = first; strip < whole; strip += kStrip) {
    const std::size_t end = std::min(whole, strip + kStrip);
    for (std::size_t c = 0; c < columns; c += kSquare) {
      for (std::size_t u = squares(c) ? strip : end; u < end; u += kSquare) {
        TransposeSquare(&rows[c], u, out + ((u - first) * columns + c) * kUnit, columns);
      }
    }
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t begin = squares(c / kSquare * kSquare) ? whole : first;
    PackColumn(rows[c], shape, begin, last - begin, out + ((begin - first) * columns + c) * kUnit);
  }
}

const WeightFormat& PlainFormat() {
  static const Plain format;
  return format;
}

}  // namespace penstock::shard::cpu
