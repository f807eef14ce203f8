// A weight matrix in the order in which the kernels read it: panels of columns (outputs), inside a
// panel K ascending, so that a product of one row reads memory from front to back.
//
// Element (packed column c, k) of a panel of `n` columns lies at
//   (c / n) * padded K * n + (k / pack) * n * pack + (c % n) * pack + k % pack
// Packed column c is output c; in a gated matrix (gate rows above up rows) vectors of gate and up
// alternate, so that both factors of an output meet in one register tile. Padding is zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/dtype.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/work_split.h"
#include "shard/tensor_view.h"

namespace penstock::shard::cpu {

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // For weights of [rows, inner]; rows become columns. No memory yet.
  PackedMatrix(std::size_t rows, std::size_t inner, bool gated, const Layout& layout, DType dtype);

  std::size_t Bytes() const;
  void SetMemory(std::byte* memory) { data_ = memory; }  // 64-byte aligned, Bytes() long

  // Copies the panels of one share; thread-safe for different shares.
  void Pack(const TensorView& weights, Share panels);
  // Values of one row of the weights, widened.
  void UnpackRow(std::size_t row, float* out) const;
  // A value per row of the weights in packed order; `out` holds PaddedColumns() floats.
  void PackBias(const float* bias, float* out) const;

  const std::byte* data() const { return data_; }
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
  template <class Element, std::size_t kPack>
  void PackPanel(const Element* weights, std::size_t panel);

  std::size_t rows_ = 0;
  std::size_t inner_ = 0;
  bool gated_ = false;
  Layout layout_;
  DType dtype_ = DType::kFloat32;
  std::byte* data_ = nullptr;
};

// One value of dtype float32 or bfloat16.
float ReadElement(const void* data, std::size_t index, DType dtype);

}  // namespace penstock::shard::cpu
