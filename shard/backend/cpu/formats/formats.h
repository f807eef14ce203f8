// The weight formats, each defined in a file of its name.
#pragma once

#include <cstddef>

#include "shard/backend/cpu/formats/weight_format.h"

namespace penstock::shard::cpu {

// float32 or bfloat16 as given. Element (column, k) of a panel lies at
//   (k / pack) * columns * pack + column * pack + k % pack
// where `pack` elements have 4 bytes: one float32 or two bfloat16. Padding is zero.
const WeightFormat& PlainFormat();

// bfloat16 in 12 bits without loss (compressed_block.h). The GEMM gives the bits of plain weights.
const WeightFormat& CompressedFormat();

// 8 bits, four K together, and a scale for each output: the largest weight divided by 127. Stored
// as q + 128 with q in [-127, 127]; rows are quantised to [-127, 127].
const WeightFormat& Int8Format();

// 4 bits and, for each 32 values of K of an output, a scale and a zero point: a weight is
// (value - zero) * scale, with value and zero in [0, 15]. A scale is a float16 times the float32
// scale of its output, a power of two that brings the largest to [2^14, 2^15]. Eight K lie
// together: byte i has K i in its lower half and K i + 4 in its upper half. Each 128 values of K of
// a panel begin with the float16 of their four groups and then with the zero points: a byte has
// that of column c in its lower half, and that of column c + columns / 2 in its upper half. Rows
// are quantised to [-127, 127] in groups of 32.
const WeightFormat& Int4Format();

// bfloat16 in 16-bit integers, two K together: q times the scale of its output and group, a power
// of two, so that a weight with |q| >= 128 is exact. Each group of a panel begins with the float32
// scales of its columns. Rows are quantised to [-kInt16Largest, kInt16Largest]. The sum of |q| over
// a group is at most kInt16Sum, so no sum of a group leaves an int32 whatever the row.
const WeightFormat& Int16Format();

// Packs the steps [first, first + count) of a plain panel; `first` is a multiple of 4.
void PackPlainSteps(const PanelSource& rows, const PanelShape& shape, std::size_t first,
                    std::size_t count, std::byte* out);

}  // namespace penstock::shard::cpu
