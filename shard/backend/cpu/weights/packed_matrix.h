// A weight matrix in the order in which the kernels read it: panels of columns (outputs), inside a
// panel K ascending, so that a GEMM of one row reads memory from front to back. A WeightFormat
// decides how a panel is stored.
//
// Packed column c is output c. In a gated matrix (gate rows above up rows) vectors of gate and up
// alternate, so that both factors of an output are in one register tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/dtype.h"
#include "shard/backend/cpu/formats/weight_format.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/work_split.h"
#include "shard/tensor_view.h"

namespace penstock::shard::cpu {

struct MatrixShape {
  std::size_t rows = 0;  // of the weights; they become columns
  std::size_t inner = 0;
  bool gated = false;
  bool int4_rows = false;  // Pack gets rows of WeightSource::ReadInt4Rows
};

// Rows of a matrix, in one or two runs: row r < `split` lies at `low` + r * `stride` bytes, any
// other at `high` + (r - split) * `stride`. Only rows that are read must exist, so `low` and `high`
// may lie before the memory that holds them.
struct RowRuns {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
  std::size_t split = 0;
  std::size_t stride = 0;
  const std::byte* Row(std::size_t row) const {
    return reinterpret_cast<const std::byte*>(row < split ? low + row * stride
                                                          : high + (row - split) * stride);
  }
};

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // For weights of the type of the kernels. Without memory. format() is the fallback of `format` if
  // that cannot store this shape.
  PackedMatrix(const MatrixShape& shape, const Kernels& kernels, const WeightFormat& format);

  std::size_t Bytes() const;
  void SetMemory(std::byte* memory) { data_ = memory; }  // 64-byte aligned, Bytes() long
  // The overflow of the format; all matrices of a store share it.
  void SetOverflow(const std::byte* memory) { overflow_ = memory; }
  const std::byte* overflow() const { return overflow_; }
  // How many blocks may need overflow at most.
  std::size_t OverflowBlocks() const { return panels() * format_->OverflowBlocks(panel_); }

  // Packs the panels of one share; thread-safe for different shares. `rows` has at least RowsOf
  // each of the panels. False: the weights do not fit the format.
  bool Pack(const RowRuns& rows, Share panels, Overflow& overflow);
  bool Pack(const TensorView& weights, Share panels, Overflow& overflow);
  // The rows that make a panel: `count` of them from `first`, and as many from outputs() + first in
  // a gated matrix.
  Share RowsOf(std::size_t panel) const;
  std::size_t RowBytes() const;  // of the rows that Pack reads
  bool int4_rows() const { return panel_.int4_rows; }
  // Values of one row of the weights, widened.
  void UnpackRow(std::size_t row, float* out) const;
  // The packed column of a row of the weights.
  std::size_t ColumnOf(std::size_t row) const;
  // A value per row of the weights in packed order; `out` holds PaddedColumns() floats.
  void PackBias(const float* bias, float* out) const;

  const std::byte* data() const { return data_; }
  const WeightFormat& format() const { return *format_; }
  // The GEMM of this matrix, and what else its format needs.
  const FormatKernels& kernels() const { return kernels_; }
  // The scales of the packed columns; null if the format has none.
  const float* scales() const;
  std::size_t inner() const { return panel_.inner; }
  bool gated() const { return gated_; }
  std::size_t outputs() const { return gated_ ? rows_ / 2 : rows_; }
  std::size_t steps() const { return panel_.Steps(); }
  std::size_t panels() const;
  std::size_t PaddedColumns() const { return panels() * layout_.PanelColumns(); }
  // Vectors that hold outputs, in units that a thread can compute alone.
  std::size_t UnitVectors() const { return gated_ ? 2 : 1; }
  std::size_t units() const { return (outputs() + layout_.lanes - 1) / layout_.lanes; }

 private:
  static constexpr std::size_t kPadding = static_cast<std::size_t>(-1);
  // Row of the weights in packed column `column`.
  std::size_t RowOf(std::size_t column) const;
  PanelSource SourceOf(const RowRuns& rows, std::size_t panel) const;
  std::size_t PanelBytes() const { return format_->PanelBytes(panel_); }

  std::size_t rows_ = 0;
  bool gated_ = false;
  Layout layout_;
  PanelShape panel_;
  const WeightFormat* format_ = nullptr;
  FormatKernels kernels_;
  std::byte* data_ = nullptr;
  const std::byte* overflow_ = nullptr;
};

}  // namespace penstock::shard::cpu
