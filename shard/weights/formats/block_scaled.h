// A matrix that is stored row by row, with a scale, and perhaps a zero point, for each block of
// rows and columns: weight = (value - zero) * scale.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "shard/weights/formats/number_tables.h"
#include "shard/weights/formats/stored_format.h"

namespace penstock::shard {

// Values of 4 or 8 bits; of two values in a byte the lower half comes first.
struct PackedValues {
  const CheckpointTensor* tensor = nullptr;
  std::uint32_t bits = 8;
  const float* table = nullptr;  // of the 16 or 256 values
  std::uint64_t row_bytes = 0;
};

struct BlockScales {
  const CheckpointTensor* tensor = nullptr;  // [ceil(rows / rows of a block), …]
  std::string_view type;                     // in which it is read (ReadFloats)
  std::uint64_t block_rows = 1;
  std::uint64_t block_columns = 1;
  float divisor = 1.0f;  // of every scale
};

struct BlockZeros {
  const CheckpointTensor* tensor = nullptr;  // null: 0
  // 0: I8, with the shape of the scales. Else in I32, packed along the rows, as values plus
  // 2^(bits - 1); then a block has one row.
  std::uint32_t packed_bits = 0;
};

class BlockScaledMatrix final : public QuantizedMatrix {
 public:
  struct Layout {
    std::uint64_t rows = 0;
    std::uint64_t columns = 0;
    std::uint64_t matrix = 0;  // of a stack
    PackedValues values;
    BlockScales scales;
    BlockZeros zeros;
    std::vector<std::uint32_t> group_of_column;  // its block of columns; empty: the blocks in order
  };

  // `tensors` are all that hold it. They have been checked.
  BlockScaledMatrix(const Checkpoint& checkpoint, Layout layout,
                    std::vector<const CheckpointTensor*> tensors)
      : QuantizedMatrix(std::move(tensors)), checkpoint_(checkpoint), layout_(std::move(layout)) {}

  absl::Status Expand(Range rows, Range columns, float* out) const override;
  bool HasInt4(Range columns) const override {
    return layout_.values.table == kOffset4.data() && layout_.group_of_column.empty() &&
           (layout_.zeros.tensor == nullptr || layout_.zeros.packed_bits == 4) &&
           FitInt4(columns, layout_.scales.block_columns, layout_.columns);
  }
  absl::Status ReadInt4(Range rows, Range columns, const Int4Rows& out) const override;

 private:
  using Floats = std::vector<float>;

  std::uint64_t GridColumns() const;
  absl::StatusOr<Floats> ReadScales(Range block_rows) const;
  absl::StatusOr<Floats> ReadZeros(Range block_rows) const;
  // Bytes of rows of values.
  absl::StatusOr<std::vector<std::uint8_t>> ReadValues(Range rows) const;
  // Decodes one row.
  void Decode(const std::uint8_t* row, Range columns, float* out) const;
  void Scale(Range columns, const float* scales, const float* zeros, float* out) const;

  const Checkpoint& checkpoint_;
  const Layout layout_;
};

// The transpose of another matrix.
class TransposedMatrix final : public QuantizedMatrix {
 public:
  explicit TransposedMatrix(QuantizedMatrixPtr stored)
      : QuantizedMatrix(stored->tensors()), stored_(std::move(stored)) {}
  absl::Status Expand(Range rows, Range columns, float* out) const override;

 private:
  const QuantizedMatrixPtr stored_;
};

}  // namespace penstock::shard
