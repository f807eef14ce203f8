#include "shard/backend/cpu/packed_matrix.h"

#include <algorithm>
#include <array>
#include <bit>

namespace penstock::shard::cpu {

float ReadElement(const void* data, std::size_t index, DType dtype) {
  if (dtype == DType::kFloat32) return static_cast<const float*>(data)[index];
  const std::uint32_t bits = static_cast<const std::uint16_t*>(data)[index];
  return std::bit_cast<float>(bits << 16);
}

PackedMatrix::PackedMatrix(std::size_t rows, std::size_t inner, bool gated, const Layout& layout,
                           DType dtype)
    : rows_(rows), inner_(inner), gated_(gated), layout_(layout), dtype_(dtype) {}

std::size_t PackedMatrix::panels() const {
  const std::size_t vectors = units() * UnitVectors();
  return (vectors + layout_.panel_vectors - 1) / layout_.panel_vectors;
}

std::size_t PackedMatrix::Bytes() const {
  return PaddedColumns() * steps() * layout_.pack * DTypeBytes(dtype_);
}

std::size_t PackedMatrix::RowOf(std::size_t column) const {
  if (!gated_) return column < rows_ ? column : kPadding;
  const std::size_t vector = column / layout_.lanes;
  const std::size_t output = vector / 2 * layout_.lanes + column % layout_.lanes;
  return output < outputs() ? vector % 2 * outputs() + output : kPadding;
}

std::size_t PackedMatrix::ColumnOf(std::size_t row) const {
  if (!gated_) return row;
  const std::size_t half = row / outputs();
  const std::size_t output = row % outputs();
  return (output / layout_.lanes * 2 + half) * layout_.lanes + output % layout_.lanes;
}

template <class Element, std::size_t kPack>
void PackedMatrix::PackPanel(const Element* weights, std::size_t panel) {
  const std::size_t columns = layout_.PanelColumns();
  const std::size_t inner = steps() * kPack;
  Element* out = reinterpret_cast<Element*>(data_) + panel * columns * inner;
  std::array<const Element*, kMaxPanel> sources{};
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t row = RowOf(panel * columns + c);
    sources[c] = row == kPadding ? nullptr : weights + row * inner_;
  }
  // Strips of K that fit the nearest cache, since each column reads another row.
  constexpr std::size_t kStrip = 32;
  for (std::size_t first = 0; first < inner; first += kStrip) {
    const std::size_t end = std::min(inner, first + kStrip);
    for (std::size_t c = 0; c < columns; ++c) {
      const Element* source = sources[c];
      for (std::size_t k = first; k < end; ++k) {
        const bool real = source != nullptr && k < inner_;
        out[k / kPack * columns * kPack + c * kPack + k % kPack] = real ? source[k] : Element(0);
      }
    }
  }
}

void PackedMatrix::Pack(const TensorView& weights, Share panels) {
  for (std::size_t panel = panels.first; panel < panels.first + panels.count; ++panel) {
    if (dtype_ == DType::kFloat32) {
      PackPanel<float, 1>(static_cast<const float*>(weights.data), panel);
    } else if (layout_.pack == 1) {
      PackPanel<std::uint16_t, 1>(static_cast<const std::uint16_t*>(weights.data), panel);
    } else {
      PackPanel<std::uint16_t, 2>(static_cast<const std::uint16_t*>(weights.data), panel);
    }
  }
}

void PackedMatrix::UnpackRow(std::size_t row, float* out) const {
  const std::size_t columns = layout_.PanelColumns();
  const std::size_t pack = layout_.pack;
  const std::size_t column = ColumnOf(row);
  const std::size_t base = column / columns * columns * steps() * pack + column % columns * pack;
  for (std::size_t k = 0; k < inner_; ++k) {
    out[k] = ReadElement(data_, base + k / pack * columns * pack + k % pack, dtype_);
  }
}

void PackedMatrix::PackBias(const float* bias, float* out) const {
  std::fill(out, out + PaddedColumns(), 0.0f);
  for (std::size_t row = 0; row < rows_; ++row) out[ColumnOf(row)] = bias[row];
}

}  // namespace penstock::shard::cpu
