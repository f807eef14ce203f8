#include "shard/weights/formats/block_scaled.h"

#include <algorithm>

#include "common/status.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kLineBits = 32;

// The rows of blocks that hold these rows.
Range BlocksOf(Range rows, std::uint64_t block_rows) {
  const std::uint64_t first = rows.first / block_rows;
  return {first, (rows.first + rows.count - 1) / block_rows - first + 1};
}

}  // namespace

std::uint64_t BlockScaledMatrix::GridColumns() const {
  return CeilDivide(layout_.columns, layout_.scales.block_columns);
}

absl::StatusOr<std::vector<float>> BlockScaledMatrix::ReadScales(Range block_rows) const {
  const BlockScales& scales = layout_.scales;
  const std::uint64_t before = layout_.matrix * CeilDivide(layout_.rows, scales.block_rows);
  PENSTOCK_ASSIGN_OR_RETURN(Floats values, ReadFloats(checkpoint_, *scales.tensor, scales.type,
                                                      (before + block_rows.first) * GridColumns(),
                                                      block_rows.count * GridColumns()));
  for (float& value : values) value /= scales.divisor;
  return values;
}

absl::StatusOr<std::vector<float>> BlockScaledMatrix::ReadZeros(Range block_rows) const {
  const std::uint64_t width = GridColumns();
  const std::uint32_t bits = layout_.zeros.packed_bits;
  if (bits == 0) {
    return ReadFloats(checkpoint_, *layout_.zeros.tensor, "I8", block_rows.first * width,
                      block_rows.count * width);
  }
  const Range lines = BlocksOf(block_rows, kLineBits / bits);
  PENSTOCK_ASSIGN_OR_RETURN(const auto words, ReadWordBlock(checkpoint_, *layout_.zeros.tensor,
                                                            width, lines, {0, width}));
  const std::uint32_t mask = (1u << bits) - 1;
  const auto middle = static_cast<float>(1u << (bits - 1));
  Floats values(block_rows.count * width);
  for (std::uint64_t i = 0; i < block_rows.count; ++i) {
    const std::uint64_t at = (block_rows.first + i) * bits;
    const std::uint32_t* line = words.data() + (at / kLineBits - lines.first) * width;
    for (std::uint64_t k = 0; k < width; ++k) {
      values[i * width + k] = static_cast<float>((line[k] >> (at % kLineBits)) & mask) - middle;
    }
  }
  return values;
}

void BlockScaledMatrix::Decode(const std::uint8_t* row, Range columns, float* out) const {
  const float* table = layout_.values.table;
  if (layout_.values.bits == 8) {
    for (std::uint64_t i = 0; i < columns.count; ++i) out[i] = table[row[columns.first + i]];
    return;
  }
  std::uint64_t i = 0;
  if (columns.first % 2 != 0 && columns.count > 0) out[i++] = table[row[columns.first / 2] >> 4];
  const std::uint8_t* next = row + (columns.first + i) / 2;
  for (; i + 1 < columns.count; i += 2, ++next) {
    out[i] = table[*next & 15u];
    out[i + 1] = table[*next >> 4];
  }
  if (i < columns.count) out[i] = table[*next & 15u];
}

void BlockScaledMatrix::Scale(Range columns, const float* scales, const float* zeros,
                              float* out) const {
  const std::vector<std::uint32_t>& groups = layout_.group_of_column;
  if (!groups.empty()) {
    for (std::uint64_t i = 0; i < columns.count; ++i) {
      const std::uint32_t group = groups[columns.first + i];
      out[i] = (out[i] - (zeros == nullptr ? 0.0f : zeros[group])) * scales[group];
    }
    return;
  }
  const std::uint64_t wide = layout_.scales.block_columns;
  for (std::uint64_t i = 0; i < columns.count;) {
    const std::uint64_t block = (columns.first + i) / wide;
    const std::uint64_t end = std::min(columns.count, (block + 1) * wide - columns.first);
    const float scale = scales[block], zero = zeros == nullptr ? 0.0f : zeros[block];
    for (; i < end; ++i) out[i] = (out[i] - zero) * scale;
  }
}

absl::StatusOr<std::vector<std::uint8_t>> BlockScaledMatrix::ReadValues(Range rows) const {
  const std::uint64_t row_bytes = layout_.values.row_bytes;
  const std::uint64_t first = layout_.matrix * layout_.rows + rows.first;
  std::vector<std::uint8_t> values(rows.count * row_bytes);
  PENSTOCK_RETURN_IF_ERROR(
      checkpoint_.Read(*layout_.values.tensor, first * row_bytes, values.size(), values.data()));
  return values;
}

absl::Status BlockScaledMatrix::Expand(Range rows, Range columns, float* out) const {
  if (rows.count == 0) return absl::OkStatus();
  const std::uint64_t block_rows = layout_.scales.block_rows, width = GridColumns();
  const Range blocks = BlocksOf(rows, block_rows);
  PENSTOCK_ASSIGN_OR_RETURN(const Floats scales, ReadScales(blocks));
  Floats zeros;
  if (layout_.zeros.tensor != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(zeros, ReadZeros(blocks));
  }
  const std::uint64_t row_bytes = layout_.values.row_bytes;
  PENSTOCK_ASSIGN_OR_RETURN(const auto values, ReadValues(rows));
  for (std::uint64_t i = 0; i < rows.count; ++i, out += columns.count) {
    const std::uint64_t line = ((rows.first + i) / block_rows - blocks.first) * width;
    Decode(values.data() + i * row_bytes, columns, out);
    Scale(columns, scales.data() + line, zeros.empty() ? nullptr : zeros.data() + line, out);
  }
  return absl::OkStatus();
}

absl::Status BlockScaledMatrix::ReadInt4(Range rows, Range columns, const Int4Rows& out) const {
  if (rows.count == 0) return absl::OkStatus();
  constexpr float kMiddle = 8.0f;  // stored values and zero points are this much more
  const std::uint64_t block_rows = layout_.scales.block_rows, grid = GridColumns();
  const Range blocks = BlocksOf(rows, block_rows);
  PENSTOCK_ASSIGN_OR_RETURN(const Floats scales, ReadScales(blocks));
  Floats zeros(scales.size());
  if (layout_.zeros.tensor != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(zeros, ReadZeros(blocks));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto values, ReadValues(rows));
  const std::uint64_t width = CeilDivide(columns.count, kInt4Columns);
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    float* row = out.values + i * columns.count;
    Decode(values.data() + i * layout_.values.row_bytes, columns, row);
    for (std::uint64_t k = 0; k < columns.count; ++k) row[k] += kMiddle;
    const std::uint64_t line = ((rows.first + i) / block_rows - blocks.first) * grid;
    for (std::uint64_t j = 0; j < width; ++j) {
      const std::uint64_t block =
          line + (columns.first + j * kInt4Columns) / layout_.scales.block_columns;
      out.scales[i * width + j] = scales[block];
      out.zeros[i * width + j] = zeros[block] + kMiddle;
    }
  }
  return absl::OkStatus();
}

absl::Status TransposedMatrix::Expand(Range rows, Range columns, float* out) const {
  std::vector<float> lines(rows.count * columns.count);
  PENSTOCK_RETURN_IF_ERROR(stored_->Expand(columns, rows, lines.data()));
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    for (std::uint64_t j = 0; j < columns.count; ++j) {
      out[i * columns.count + j] = lines[j * rows.count + i];
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
