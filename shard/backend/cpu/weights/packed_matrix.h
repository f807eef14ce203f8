// A weight matrix in the order in which the kernels read it: panels of columns (outputs), inside a
// panel K ascending, so that a product of one row reads memory from front to back.
//
// Element (packed column c, k) of a panel of `n` columns lies at
//   (c / n) * padded K * n + (k / pack) * n * pack + (c % n) * pack + k % pack
// where `pack` elements have 4 bytes: one float32, two bfloat16.
// Packed column c is output c; in a gated matrix (gate rows above up rows) vectors of gate and up
// alternate, so that both factors of an output meet in one register tile. Padding is zero.
//
// Quantised to int8 (kernels.h), `pack` is kInt8Pack, and behind the panels there is a float32
// scale for each packed column: the largest weight of its output divided by 127. Of 16-bit integers
// each group of K of a panel begins with the scales of its columns. Coded (coded_block.h), a panel
// is a sequence of blocks; a matrix whose panels are not whole groups stays plain.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/dtype.h"
#include "shard/backend/cpu/weights/coded_block.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/work_split.h"
#include "shard/tensor_view.h"

namespace penstock::shard::cpu {

struct MatrixShape {
  std::size_t rows = 0;  // of the weights; they become columns
  std::size_t inner = 0;
  bool gated = false;
};

// Rows of a matrix, in one or two runs: row r < `split` lies at `low` + r * `stride` bytes, any
// other at `high` + (r - split) * `stride`. Only rows that are asked for must exist, so the places
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
  // For weights of `dtype` and these kernels, which outlive it. No memory yet. storage() is kPlain
  // where kCoded is asked for and cannot be.
  PackedMatrix(const MatrixShape& shape, const Kernels& kernels, DType dtype,
               Storage storage = Storage::kPlain);

  std::size_t Bytes() const;
  void SetMemory(std::byte* memory) { data_ = memory; }  // 64-byte aligned, Bytes() long
  // Of coded weights: where blocks are that are not; of a store, the same for all its matrices.
  void SetRawBlocks(const std::byte* memory) { raw_blocks_ = memory; }
  const std::byte* raw_blocks() const { return raw_blocks_; }
  std::size_t Blocks() const;  // of coded weights

  // Copies the panels of one share; thread-safe for different shares. `rows` has at least RowsOf
  // each of the panels. `raw` takes the blocks of coded weights that cannot be coded; false when it
  // has no room for them.
  bool Pack(const RowRuns& rows, Share panels, RawBlocks& raw);
  bool Pack(const TensorView& weights, Share panels, RawBlocks& raw);
  // The rows that a panel is made of: `count` of them from `first`, and as many from outputs() +
  // first in a gated matrix.
  Share RowsOf(std::size_t panel) const;
  std::size_t RowBytes() const { return inner_ * DTypeBytes(dtype_); }
  // Values of one row of the weights, widened.
  void UnpackRow(std::size_t row, float* out) const;
  // A value per row of the weights in packed order; `out` holds PaddedColumns() floats.
  void PackBias(const float* bias, float* out) const;

  const std::byte* data() const { return data_; }
  Storage storage() const { return storage_; }
  // Of the packed columns, of int8; null otherwise.
  const float* scales() const;
  std::size_t inner() const { return inner_; }
  bool gated() const { return gated_; }
  std::size_t outputs() const { return gated_ ? rows_ / 2 : rows_; }
  std::size_t steps() const { return (inner_ + layout_.pack - 1) / layout_.pack; }
  std::size_t panels() const;
  std::size_t PaddedColumns() const { return panels() * layout_.PanelColumns(); }
  // Vectors that hold outputs, in units that a thread can compute alone.
  std::size_t UnitVectors() const { return gated_ ? 2 : 1; }
  std::size_t units() const { return (outputs() + layout_.lanes - 1) / layout_.lanes; }

 private:
  static constexpr std::size_t kPadding = static_cast<std::size_t>(-1);
  // Row of the weights in packed column `column`.
  std::size_t RowOf(std::size_t column) const;
  std::size_t ColumnOf(std::size_t row) const;
  using Sources = std::array<const std::byte*, kMaxPanel>;
  // The row of each column of a panel; null for padding.
  Sources SourcesOf(const RowRuns& rows, std::size_t panel) const;
  // Units of all columns of a panel, the first one a multiple of kSquare.
  void PackUnits(const Sources& sources, Share units, std::byte* out) const;
  void PackColumn(const std::byte* row, Share units, std::byte* out) const;
  bool CodePanel(const Sources& sources, std::byte* out, RawBlocks& raw) const;
  void QuantizePanel(const Sources& sources, std::size_t panel);
  std::size_t ElementBytes() const { return storage_ == Storage::kInt8 ? 1 : DTypeBytes(dtype_); }
  std::size_t PlainPanelBytes() const;
  std::size_t PanelBytes() const;
  void UnpackInt16Row(std::size_t column, float* out) const;

  std::size_t rows_ = 0;
  std::size_t inner_ = 0;
  bool gated_ = false;
  Layout layout_;
  DType dtype_ = DType::kFloat32;  // of the weights
  Storage storage_ = Storage::kPlain;
  void (*pack_int16_)(const PackInt16Args& args) = nullptr;
  std::byte* data_ = nullptr;
  const std::byte* raw_blocks_ = nullptr;
};

// One value of dtype float32 or bfloat16.
float ReadElement(const void* data, std::size_t index, DType dtype);

}  // namespace penstock::shard::cpu
