// A matrix [N, K] in the layout of AWQ and GPTQ: its transpose is stored, and a word of 32 bits
// holds several values of one column or of one row. Columns form groups, each with a zero and a
// scale: weight = (value - zero) * scale.
#pragma once

#include <cstdint>
#include <vector>

#include "shard/weights/formats/stored_format.h"

namespace penstock::shard {

struct ColumnPackedLayout {
  std::uint64_t rows = 0;     // N
  std::uint64_t columns = 0;  // K
  std::uint32_t bits = 4;
  std::uint64_t group = 0;                     // columns with one scale
  const CheckpointTensor* values = nullptr;    // I32
  const CheckpointTensor* zeros = nullptr;     // I32 [K / group, N bits / 32]
  const CheckpointTensor* scales = nullptr;    // [K / group, N]
  std::vector<std::uint32_t> group_of_column;  // empty: the groups in order
  bool zeros_less_one = false;                 // they are stored minus 1
  // Where a word holds values of eight rows (AWQ): true. Else of columns, and low bits first.
  bool along_rows = false;

  std::uint64_t Groups() const { return (columns + group - 1) / group; }
};

class ColumnPackedMatrix final : public QuantizedMatrix {
 public:
  // `tensors` are all that hold it. They have been checked.
  ColumnPackedMatrix(const Checkpoint& checkpoint, ColumnPackedLayout layout,
                     std::vector<const CheckpointTensor*> tensors)
      : QuantizedMatrix(std::move(tensors)), checkpoint_(checkpoint), layout_(std::move(layout)) {}

  absl::Status Expand(Range rows, Range columns, float* out) const override;
  bool HasInt4(Range columns) const override {
    return layout_.bits == 4 && layout_.group_of_column.empty() &&
           FitInt4(columns, layout_.group, layout_.columns);
  }
  absl::Status ReadInt4(Range rows, Range columns, const Int4Rows& out) const override;

 private:
  // The values as floats, before zero and scale.
  absl::Status ExpandValues(Range rows, Range columns, float* out) const;
  absl::Status ExpandColumns(Range rows, Range columns, float* out) const;  // words of columns
  absl::Status ExpandRows(Range rows, Range columns, float* out) const;     // words of rows
  // [groups][rows.count], as they are subtracted.
  absl::StatusOr<std::vector<float>> ReadZeros(Range rows) const;
  void Scale(Range rows, Range columns, const float* scales, const float* zeros, float* out) const;

  const Checkpoint& checkpoint_;
  const ColumnPackedLayout layout_;
};

}  // namespace penstock::shard
