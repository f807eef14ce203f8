#include "shard/backend/cpu/weights/packed_matrix.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "shard/backend/cpu/weights/transpose.h"

namespace penstock::shard::cpu {

float ReadElement(const void* data, std::size_t index, DType dtype) {
  if (dtype == DType::kFloat32) return static_cast<const float*>(data)[index];
  const std::uint32_t bits = static_cast<const std::uint16_t*>(data)[index];
  return std::bit_cast<float>(bits << 16);
}

namespace {

void Widen(const std::byte* from, DType dtype, std::size_t count, float* to) {
  if (dtype == DType::kFloat32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

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

}  // namespace

PackedMatrix::PackedMatrix(const MatrixShape& shape, const Kernels& kernels, DType dtype,
                           Storage storage)
    : rows_(shape.rows),
      inner_(shape.inner),
      gated_(shape.gated),
      layout_(kernels.layout),
      dtype_(dtype),
      storage_(storage),
      pack_int16_(kernels.pack_int16) {
  if (HoldsIntegers(storage)) layout_.pack = KernelsOf(kernels, storage).pack;
  const bool whole_groups = PlainPanelBytes() % kCodedGroupPlain == 0;
  if (storage == Storage::kCoded && !whole_groups) storage_ = Storage::kPlain;
}

std::size_t PackedMatrix::panels() const {
  const std::size_t vectors = units() * UnitVectors();
  return (vectors + layout_.panel_vectors - 1) / layout_.panel_vectors;
}

std::size_t PackedMatrix::PlainPanelBytes() const {
  return layout_.PanelColumns() * steps() * layout_.pack * ElementBytes();
}

std::size_t PackedMatrix::PanelBytes() const {
  if (storage_ == Storage::kCoded) return CodedBytes(PlainPanelBytes());
  const std::size_t groups =
      storage_ == Storage::kInt16 ? (inner_ + kIntegerGroup - 1) / kIntegerGroup : 0;
  return PlainPanelBytes() + layout_.PanelColumns() * groups * sizeof(float);
}

std::size_t PackedMatrix::Blocks() const {
  return storage_ == Storage::kCoded ? panels() * CodedBlocks(PlainPanelBytes()) : 0;
}

std::size_t PackedMatrix::Bytes() const {
  const std::size_t scales = storage_ == Storage::kInt8 ? PaddedColumns() * sizeof(float) : 0;
  return panels() * PanelBytes() + scales;
}

const float* PackedMatrix::scales() const {
  if (storage_ != Storage::kInt8) return nullptr;
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

PackedMatrix::Sources PackedMatrix::SourcesOf(const RowRuns& rows, std::size_t panel) const {
  Sources sources{};
  for (std::size_t c = 0; c < layout_.PanelColumns(); ++c) {
    const std::size_t row = RowOf(panel * layout_.PanelColumns() + c);
    sources[c] = row == kPadding ? nullptr : rows.Row(row);
  }
  return sources;
}

// Squares of units, one unit being the elements that lie together.
void PackedMatrix::PackUnits(const Sources& sources, Share units, std::byte* out) const {
  const std::size_t columns = layout_.PanelColumns();
  const std::size_t last = units.first + units.count;
  // Units that squares cover.
  const std::size_t whole =
      std::max(units.first, std::min(last, RowBytes() / kUnit) / kSquare * kSquare);
  const auto squares = [&](std::size_t c) {  // whether a square's columns are all there
    return c + kSquare <= columns && std::count(&sources[c], &sources[c] + kSquare, nullptr) == 0;
  };
  // Strips of what a line of a row holds: few rows at a time, and output that stays in the cache.
  constexpr std::size_t kStrip = 64 / kUnit;
  for (std::size_t first = units.first; first < whole; first += kStrip) {
    const std::size_t end = std::min(whole, first + kStrip);
    for (std::size_t c = 0; c < columns; c += kSquare) {
      for (std::size_t u = squares(c) ? first : end; u < end; u += kSquare) {
        std::byte* to = out + ((u - units.first) * columns + c) * kUnit;
        TransposeSquare(&sources[c], u, to, columns);
      }
    }
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const std::size_t first = squares(c / kSquare * kSquare) ? whole : units.first;
    PackColumn(sources[c], {first, last - first},
               out + ((first - units.first) * columns + c) * kUnit);
  }
}

// Units of a column, one by one.
void PackedMatrix::PackColumn(const std::byte* row, Share units, std::byte* out) const {
  const std::size_t there = row == nullptr ? 0 : RowBytes();
  for (std::size_t u = units.first; u < units.first + units.count; ++u) {
    const std::size_t bytes = std::min(kUnit, there - std::min(there, u * kUnit));
    std::memset(out, 0, kUnit);
    if (bytes > 0) std::memcpy(out, row + u * kUnit, bytes);
    out += layout_.PanelColumns() * kUnit;
  }
}

bool PackedMatrix::CodePanel(const Sources& sources, std::byte* out, RawBlocks& raw) const {
  alignas(64) std::byte plain[kCodedPlain];
  const std::size_t unit_bytes = layout_.PanelColumns() * kUnit;
  const std::size_t most = kCodedPlain / unit_bytes;
  for (std::size_t first = 0; first < steps(); first += most) {
    const std::size_t count = std::min(most, steps() - first);
    PackUnits(sources, {first, count}, plain);
    if (!CodeBlock(plain, count * unit_bytes, raw, out)) return false;
    out += CodedBytes(count * unit_bytes);
  }
  return true;
}

void PackedMatrix::QuantizePanel(const Sources& sources, std::size_t panel) {
  const std::size_t columns = layout_.PanelColumns();
  auto* out = reinterpret_cast<std::uint8_t*>(data_ + panel * PanelBytes());
  auto* scales = const_cast<float*>(this->scales()) + panel * columns;
  const std::size_t padded = steps() * kInt8Pack;
  std::vector<float> row(padded, 0.0f);
  for (std::size_t c = 0; c < columns; ++c) {
    if (sources[c] == nullptr) {
      std::fill(row.begin(), row.end(), 0.0f);
    } else {
      Widen(sources[c], dtype_, inner_, row.data());
    }
    const float largest = LargestOf(row.data(), inner_);
    const float inverse = largest > 0 ? 127.0f / largest : 0.0f;
    scales[c] = largest / 127.0f;
    for (std::size_t step = 0; step < steps(); ++step) {
      std::uint8_t* to = out + (step * columns + c) * kInt8Pack;
      for (std::size_t i = 0; i < kInt8Pack; ++i) {
        to[i] = BiasedInt8(row[step * kInt8Pack + i] * inverse);
      }
    }
  }
}

bool PackedMatrix::Pack(const RowRuns& rows, Share panels, RawBlocks& raw) {
  for (std::size_t panel = panels.first; panel < panels.first + panels.count; ++panel) {
    const Sources sources = SourcesOf(rows, panel);
    std::byte* out = data_ + panel * PanelBytes();
    switch (storage_) {
      case Storage::kPlain:
        PackUnits(sources, {0, steps()}, out);
        break;
      case Storage::kCoded:
        if (!CodePanel(sources, out, raw)) return false;
        break;
      case Storage::kInt8:
        QuantizePanel(sources, panel);
        break;
      case Storage::kInt16:
        pack_int16_({sources.data(), inner_, out});
    }
  }
  return true;
}

bool PackedMatrix::Pack(const TensorView& weights, Share panels, RawBlocks& raw) {
  const auto base = reinterpret_cast<std::uintptr_t>(weights.data);
  return Pack(RowRuns{base, base, rows_ + 1, RowBytes()}, panels, raw);
}

void PackedMatrix::UnpackInt16Row(std::size_t column, float* out) const {
  const std::size_t columns = layout_.PanelColumns();
  const std::byte* group = data_ + column / columns * PanelBytes();
  for (std::size_t first = 0; first < inner_; first += kIntegerGroup) {
    const std::size_t count = std::min(kIntegerGroup, inner_ - first);
    const float scale = reinterpret_cast<const float*>(group)[column % columns];
    group += columns * sizeof(float);
    const auto* pairs =
        reinterpret_cast<const std::int16_t*>(group) + column % columns * kInt16Pack;
    for (std::size_t k = 0; k < count; ++k) {
      const std::int16_t q = pairs[k / kInt16Pack * columns * kInt16Pack + k % kInt16Pack];
      out[first + k] = static_cast<float>(q) * scale;
    }
    group += columns * kIntegerGroup * sizeof(std::int16_t);
  }
}

void PackedMatrix::UnpackRow(std::size_t row, float* out) const {
  const std::size_t columns = layout_.PanelColumns();
  const std::size_t pack = layout_.pack;
  const std::size_t column = ColumnOf(row);
  if (storage_ == Storage::kInt16) return UnpackInt16Row(column, out);
  const std::size_t panel = column / columns;
  const std::size_t base = panel * columns * steps() * pack;
  for (std::size_t k = 0; k < inner_; ++k) {
    const std::size_t in_panel = (k / pack * columns + column % columns) * pack + k % pack;
    const std::size_t at = base + in_panel;
    if (storage_ == Storage::kCoded) {
      const std::uint16_t bits = CodedWeight(data_ + panel * PanelBytes(), in_panel, raw_blocks_);
      out[k] = ReadElement(&bits, 0, DType::kBFloat16);
    } else if (storage_ == Storage::kInt8) {
      const int q = std::to_integer<int>(data_[at]) - 128;
      out[k] = static_cast<float>(q) * scales()[column];
    } else {
      out[k] = ReadElement(data_, at, dtype_);
    }
  }
}

void PackedMatrix::PackBias(const float* bias, float* out) const {
  std::fill(out, out + PaddedColumns(), 0.0f);
  for (std::size_t row = 0; row < rows_; ++row) out[ColumnOf(row)] = bias[row];
}

}  // namespace penstock::shard::cpu
