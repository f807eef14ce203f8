#include "shard/weights/formats/column_packed.h"

#include <algorithm>
#include <array>

#include "common/status.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kWordBits = 32;
// The shift of row i of eight in a word of AWQ.
constexpr std::array<std::uint32_t, 8> kAwqShifts = {0, 16, 4, 20, 8, 24, 12, 28};

// The words that hold `values` of `bits` bits each, one after the other.
Range WordsOf(Range values, std::uint32_t bits) {
  const std::uint64_t first = values.first * bits / kWordBits;
  return {first, CeilDivide((values.first + values.count) * bits, kWordBits) - first};
}

// A value of `bits` bits that begins at bit `at`. It may end in the next word.
std::uint32_t ValueAt(const std::uint32_t* words, std::uint64_t at, std::uint32_t bits) {
  const std::uint64_t word = at / kWordBits, shift = at % kWordBits;
  std::uint64_t pair = words[word];
  if (shift + bits > kWordBits) pair |= std::uint64_t{words[word + 1]} << kWordBits;
  return static_cast<std::uint32_t>(pair >> shift) & ((1u << bits) - 1);
}

// The same for many, with a width that divides that of a word; `first` counts values.
template <std::uint32_t kBits>
void DecodeWhole(const std::uint32_t* words, std::uint64_t first, std::uint64_t count, float* out) {
  constexpr std::uint64_t kValues = kWordBits / kBits;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = first + i;
    out[i] =
        static_cast<float>(words[at / kValues] >> (at % kValues * kBits) & ((1u << kBits) - 1));
  }
}

// `first` counts bits.
void Decode(const std::uint32_t* words, std::uint64_t first, std::uint32_t bits,
            std::uint64_t count, float* out) {
  switch (bits) {
    case 2:
      return DecodeWhole<2>(words, first / 2, count, out);
    case 4:
      return DecodeWhole<4>(words, first / 4, count, out);
    case 8:
      return DecodeWhole<8>(words, first / 8, count, out);
    default:
      for (std::uint64_t i = 0; i < count; ++i) {
        out[i] = static_cast<float>(ValueAt(words, first + i * bits, bits));
      }
  }
}

// The transpose of `rows` x `columns` words, so that those of an output lie together.
std::vector<std::uint32_t> Transposed(const std::vector<std::uint32_t>& words, std::uint64_t rows,
                                      std::uint64_t columns) {
  constexpr std::uint64_t kTile = 16;
  std::vector<std::uint32_t> turned(words.size());
  for (std::uint64_t i = 0; i < rows; i += kTile) {
    for (std::uint64_t j = 0; j < columns; ++j) {
      for (std::uint64_t k = i; k < std::min(rows, i + kTile); ++k) {
        turned[j * rows + k] = words[k * columns + j];
      }
    }
  }
  return turned;
}

std::uint32_t AwqValueAt(const std::uint32_t* words, std::uint64_t row) {
  return (words[row / 8] >> kAwqShifts[row % 8]) & 15u;
}

}  // namespace

// Each column of words gives a row of the matrix.
absl::Status ColumnPackedMatrix::ExpandColumns(Range rows, Range columns, float* out) const {
  const std::uint32_t bits = layout_.bits;
  const Range lines = WordsOf(columns, bits);
  PENSTOCK_ASSIGN_OR_RETURN(const auto stored,
                            ReadWordBlock(checkpoint_, *layout_.values, layout_.rows, lines, rows));
  const std::vector<std::uint32_t> words = Transposed(stored, lines.count, rows.count);
  const std::uint64_t first = columns.first * bits - lines.first * kWordBits;
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    Decode(words.data() + i * lines.count, first, bits, columns.count, out + i * columns.count);
  }
  return absl::OkStatus();
}

absl::Status ColumnPackedMatrix::ExpandRows(Range rows, Range columns, float* out) const {
  const Range across = WordsOf(rows, layout_.bits);
  PENSTOCK_ASSIGN_OR_RETURN(const auto stored, ReadWordBlock(checkpoint_, *layout_.values,
                                                             layout_.rows / 8, columns, across));
  const std::vector<std::uint32_t> words = Transposed(stored, columns.count, across.count);
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    const std::uint64_t at = rows.first - across.first * 8 + i;
    const std::uint32_t* line = words.data() + at / 8 * columns.count;
    const std::uint32_t shift = kAwqShifts[at % 8];
    float* row = out + i * columns.count;
    for (std::uint64_t k = 0; k < columns.count; ++k) {
      row[k] = static_cast<float>(line[k] >> shift & 15u);
    }
  }
  return absl::OkStatus();
}

absl::Status ColumnPackedMatrix::ExpandValues(Range rows, Range columns, float* out) const {
  return layout_.along_rows ? ExpandRows(rows, columns, out) : ExpandColumns(rows, columns, out);
}

absl::StatusOr<std::vector<float>> ColumnPackedMatrix::ReadZeros(Range rows) const {
  const std::uint32_t bits = layout_.bits;
  const Range across = WordsOf(rows, bits);
  const std::uint64_t groups = layout_.Groups();
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto words, ReadWordBlock(checkpoint_, *layout_.zeros, layout_.zeros->info->shape[1],
                                      {0, groups}, across));
  const std::uint64_t first = rows.first * bits - across.first * kWordBits;
  std::vector<float> zeros(groups * rows.count);
  for (std::uint64_t g = 0; g < groups; ++g) {
    const std::uint32_t* line = words.data() + g * across.count;
    for (std::uint64_t i = 0; i < rows.count; ++i) {
      std::uint32_t zero = layout_.along_rows ? AwqValueAt(line, rows.first - across.first * 8 + i)
                                              : ValueAt(line, first + i * bits, bits);
      // A zero point of 0 was stored as the largest value.
      if (layout_.zeros_less_one) zero = (zero + 1) & ((1u << bits) - 1);
      zeros[g * rows.count + i] = static_cast<float>(zero);
    }
  }
  return zeros;
}

void ColumnPackedMatrix::Scale(Range rows, Range columns, const float* scales, const float* zeros,
                               float* out) const {
  const std::vector<std::uint32_t>& groups = layout_.group_of_column;
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    float* row = out + i * columns.count;
    for (std::uint64_t k = 0; k < columns.count;) {
      const std::uint64_t column = columns.first + k;
      const std::uint64_t group = groups.empty() ? column / layout_.group : groups[column];
      const std::uint64_t end =
          groups.empty() ? std::min(columns.count, (group + 1) * layout_.group - columns.first)
                         : k + 1;
      const float scale = scales[group * rows.count + i], zero = zeros[group * rows.count + i];
      for (; k < end; ++k) row[k] = (row[k] - zero) * scale;
    }
  }
}

absl::Status ColumnPackedMatrix::Expand(Range rows, Range columns, float* out) const {
  if (rows.count == 0 || columns.count == 0) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto scales,
      ReadFloatBlock(checkpoint_, *layout_.scales, layout_.rows, {0, layout_.Groups()}, rows));
  PENSTOCK_ASSIGN_OR_RETURN(const auto zeros, ReadZeros(rows));
  PENSTOCK_RETURN_IF_ERROR(ExpandValues(rows, columns, out));
  Scale(rows, columns, scales.data(), zeros.data(), out);
  return absl::OkStatus();
}

absl::Status ColumnPackedMatrix::ReadInt4(Range rows, Range columns, const Int4Rows& out) const {
  if (rows.count == 0 || columns.count == 0) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto scales,
      ReadFloatBlock(checkpoint_, *layout_.scales, layout_.rows, {0, layout_.Groups()}, rows));
  PENSTOCK_ASSIGN_OR_RETURN(const auto zeros, ReadZeros(rows));
  const std::uint64_t width = CeilDivide(columns.count, kInt4Columns);
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    for (std::uint64_t j = 0; j < width; ++j) {
      const std::uint64_t group = (columns.first + j * kInt4Columns) / layout_.group;
      out.scales[i * width + j] = scales[group * rows.count + i];
      out.zeros[i * width + j] = zeros[group * rows.count + i];
    }
  }
  return ExpandValues(rows, columns, out.values);
}

}  // namespace penstock::shard
