#include "shard/backend/cpu/weights/packed_matrix.h"

#include <algorithm>

#include "shard/weights/weight_source.h"

namespace penstock::shard::cpu {

PackedMatrix::PackedMatrix(const MatrixShape& shape, const Kernels& kernels,
                           const WeightFormat& format)
    : rows_(shape.rows), gated_(shape.gated), layout_(kernels.layout), format_(&format) {
  panel_ = {layout_.PanelColumns(), shape.inner, layout_.pack, kernels.weight, shape.int4_rows};
  if (format.Fallback() != nullptr && !format.Fits(panel_)) format_ = format.Fallback();
  kernels_ = kernels.formats[format_->id()];
  panel_.pack = kernels_.pack;
}

std::size_t PackedMatrix::panels() const {
  const std::size_t vectors = units() * UnitVectors();
  return (vectors + layout_.panel_vectors - 1) / layout_.panel_vectors;
}

std::size_t PackedMatrix::RowBytes() const {
  return panel_.int4_rows ? Int4RowFloats(panel_.inner) * sizeof(float)
                          : panel_.inner * DTypeBytes(panel_.dtype);
}

std::size_t PackedMatrix::Bytes() const {
  const std::size_t scales = format_->has_column_scales() ? PaddedColumns() * sizeof(float) : 0;
  return panels() * PanelBytes() + scales;
}

const float* PackedMatrix::scales() const {
  if (!format_->has_column_scales()) return nullptr;
  return reinterpret_cast<const float*>(data_ + panels() * PanelBytes());
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

Share PackedMatrix::RowsOf(std::size_t panel) const {
  const std::size_t width = layout_.PanelColumns() / UnitVectors();
  const std::size_t first = std::min(panel * width, outputs());
  return {first, std::min(width, outputs() - first)};
}

PanelSource PackedMatrix::SourceOf(const RowRuns& rows, std::size_t panel) const {
  PanelSource source{};
  for (std::size_t c = 0; c < layout_.PanelColumns(); ++c) {
    const std::size_t row = RowOf(panel * layout_.PanelColumns() + c);
    source[c] = row == kPadding ? nullptr : rows.Row(row);
  }
  return source;
}

bool PackedMatrix::Pack(const RowRuns& rows, Share panels, Overflow& overflow) {
  float* const scales = const_cast<float*>(this->scales());
  for (std::size_t panel = panels.first; panel < panels.first + panels.count; ++panel) {
    const PanelMemory out{data_ + panel * PanelBytes(),
                          scales == nullptr ? nullptr : scales + panel * panel_.columns};
    if (!format_->PackPanel(SourceOf(rows, panel), panel_, kernels_, out, overflow)) return false;
  }
  return true;
}

bool PackedMatrix::Pack(const TensorView& weights, Share panels, Overflow& overflow) {
  const auto base = reinterpret_cast<std::uintptr_t>(weights.data);
  return Pack(RowRuns{base, base, rows_ + 1, RowBytes()}, panels, overflow);
}

void PackedMatrix::UnpackRow(std::size_t row, float* out) const {
  const std::size_t column = ColumnOf(row);
  const std::size_t panel = column / panel_.columns;
  const float* const scales = this->scales();
  const PanelView view{data_ + panel * PanelBytes(),
                       scales == nullptr ? nullptr : scales + panel * panel_.columns, overflow_};
  format_->UnpackColumn(view, panel_, column % panel_.columns, out);
}

void PackedMatrix::PackBias(const float* bias, float* out) const {
  std::fill(out, out + PaddedColumns(), 0.0f);
  for (std::size_t row = 0; row < rows_; ++row) out[ColumnOf(row)] = bias[row];
}

}  // namespace penstock::shard::cpu
