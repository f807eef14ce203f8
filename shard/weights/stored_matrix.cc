#include "shard/weights/stored_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr std::string_view kFp8Type = "F8_E4M3";
constexpr std::string_view kFp8Scales = "_scale_inv";
constexpr std::string_view kMxfp4Blocks = "_blocks";
constexpr std::string_view kMxfp4Scales = "_scales";
constexpr std::uint64_t kMxfp4Group = 32;  // values with one scale
constexpr std::uint64_t kMxfp4GroupBytes = 16;

std::uint64_t CeilDivide(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

float E4m3(unsigned byte) {
  const unsigned exponent = (byte >> 3) & 15u, fraction = byte & 7u;
  if ((byte & 127u) == 127u) return std::numeric_limits<float>::quiet_NaN();
  const float size =
      exponent == 0 ? std::ldexp(static_cast<float>(fraction), -9)
                    : std::ldexp(static_cast<float>(8 + fraction), static_cast<int>(exponent) - 10);
  return (byte & 128u) != 0 ? -size : size;
}

const std::array<float, 256>& E4m3Table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (unsigned i = 0; i < values.size(); ++i) values[i] = E4m3(i);
    return values;
  }();
  return table;
}

constexpr std::array<float, 16> kE2m1 = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                         -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// A power of two as its exponent plus 127; 255 is not a number.
float E8m0(std::uint8_t byte) {
  if (byte == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0f, static_cast<int>(byte) - 127);
}

bool IsScaleType(std::string_view type) {
  return type == "F32" || type == "BF16" || type == "F8_E8M0";
}

std::uint64_t ScaleBytes(std::string_view type) {
  return type == "F32" ? 4 : type == "BF16" ? 2 : 1;
}

float Scale(std::string_view type, const std::uint8_t* from) {
  if (type == "F8_E8M0") return E8m0(*from);
  if (type == "BF16") {
    std::uint16_t bits;
    std::memcpy(&bits, from, sizeof bits);
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
  float value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::string Who(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  return checkpoint.FileName(tensor) + ": tensor " + tensor.info->name;
}

absl::Status CheckTensor(const Checkpoint& checkpoint, const CheckpointTensor* tensor,
                         const std::string& name, const std::vector<std::uint64_t>& shape) {
  if (tensor == nullptr) {
    return absl::NotFoundError("tensor " + name + " is missing; config.json asks for " +
                               ShapeText(shape));
  }
  if (tensor->info->shape == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(Who(checkpoint, *tensor) + " has shape " +
                                    ShapeText(tensor->info->shape) + "; config.json asks for " +
                                    ShapeText(shape));
}

absl::Status BadType(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                     const std::string& wanted) {
  return absl::InvalidArgumentError(Who(checkpoint, tensor) + " has dtype " +
                                    std::string(tensor.info->type) + "; Penstock loads " + wanted);
}

// With the dimension of the stack, if there is one.
std::vector<std::uint64_t> Stacked(const WeightPart& part, std::vector<std::uint64_t> shape) {
  if (part.stack > 0) shape.insert(shape.begin(), part.stack);
  return shape;
}

absl::Status CheckFp8(const Checkpoint& checkpoint, const WeightPlan& plan, const WeightPart& part,
                      const StoredMatrix& stored) {
  if (part.stored_shape.size() != 2 || (part.transposed && part.row_step != 1)) {
    return BadType(checkpoint, *stored.values, "F32, BF16 and F16 here");
  }
  std::vector<std::uint64_t> shape = part.stored_shape;
  if (part.transposed) std::swap(shape[0], shape[1]);
  PENSTOCK_RETURN_IF_ERROR(
      CheckTensor(checkpoint, stored.values, part.tensor, Stacked(part, shape)));
  if (plan.fp8_block.rows == 0) {
    return absl::InvalidArgumentError(
        Who(checkpoint, *stored.values) + " has dtype " + std::string(kFp8Type) +
        "; then config.json must have `quantization_config` with `quant_method` fp8");
  }
  PENSTOCK_RETURN_IF_ERROR(
      CheckTensor(checkpoint, stored.scales, part.tensor + std::string(kFp8Scales),
                  Stacked(part, {CeilDivide(shape[0], plan.fp8_block.rows),
                                 CeilDivide(shape[1], plan.fp8_block.columns)})));
  if (IsScaleType(stored.scales->info->type)) return absl::OkStatus();
  return BadType(checkpoint, *stored.scales, "scales in F32, BF16 and F8_E8M0");
}

absl::Status CheckMxfp4(const Checkpoint& checkpoint, const WeightPart& part,
                        const StoredMatrix& stored) {
  const std::vector<std::uint64_t>& shape = part.stored_shape;
  if (shape.size() != 2 || shape[1] % kMxfp4Group != 0) {
    return absl::InvalidArgumentError(Who(checkpoint, *stored.values) +
                                      " holds groups of 32 values; config.json asks for " +
                                      ShapeText(Stacked(part, shape)));
  }
  const std::uint64_t groups = shape[1] / kMxfp4Group;
  PENSTOCK_RETURN_IF_ERROR(CheckTensor(checkpoint, stored.values,
                                       part.tensor + std::string(kMxfp4Blocks),
                                       Stacked(part, {shape[0], groups, kMxfp4GroupBytes})));
  PENSTOCK_RETURN_IF_ERROR(CheckTensor(checkpoint, stored.scales,
                                       part.tensor + std::string(kMxfp4Scales),
                                       Stacked(part, {shape[0], groups})));
  for (const CheckpointTensor* tensor : {stored.values, stored.scales}) {
    if (tensor->info->type != "U8") return BadType(checkpoint, *tensor, "U8 here");
  }
  return absl::OkStatus();
}

absl::Status CheckPlain(const Checkpoint& checkpoint, const WeightPart& part,
                        const StoredMatrix& stored) {
  std::vector<std::uint64_t> shape = part.stored_shape;
  if (part.transposed) std::swap(shape[0], shape[1]);
  PENSTOCK_RETURN_IF_ERROR(
      CheckTensor(checkpoint, stored.values, part.tensor, Stacked(part, shape)));
  if (stored.values->info->dtype.has_value()) return absl::OkStatus();
  return BadType(checkpoint, *stored.values, "F32, BF16 and F16");
}

// Reads the stored rows of a quantised matrix one by one.
class RowReader {
 public:
  RowReader(const Checkpoint& checkpoint, const WeightPlan& plan, const WeightPart& part)
      : checkpoint_(checkpoint),
        part_(part),
        stored_(FindStored(checkpoint, part)),
        fp8_(stored_.encoding == StoredMatrix::Encoding::kFp8),
        block_(fp8_ ? plan.fp8_block : Fp8Block{1, kMxfp4Group}),
        columns_(part.stored_shape[1]),
        values_(fp8_ ? columns_ : columns_ / 2),
        scale_type_(fp8_ ? stored_.scales->info->type : "F8_E8M0"),
        scales_(CeilDivide(columns_, block_.columns)),
        stored_scales_(scales_.size() * ScaleBytes(scale_type_)) {}

  // Columns of the part, of row `row` of the stored matrix.
  absl::Status Read(std::uint64_t row, float* out) {
    const std::uint64_t at = part_.matrix * part_.stored_shape[0] + row;
    PENSTOCK_RETURN_IF_ERROR(
        checkpoint_.Read(*stored_.values, at * values_.size(), values_.size(), values_.data()));
    PENSTOCK_RETURN_IF_ERROR(ReadScales(row / block_.rows));
    const Range columns = part_.columns;
    for (std::uint64_t i = 0; i < columns.count;) {
      const std::uint64_t block = (columns.first + i) / block_.columns;
      const std::uint64_t end =
          std::min(columns.count, (block + 1) * block_.columns - columns.first);
      for (const float scale = scales_[block]; i < end; ++i) {
        out[i] = Value(columns.first + i) * scale;
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadScales(std::uint64_t block_row) {
    if (block_row == block_row_) return absl::OkStatus();
    const std::uint64_t rows = CeilDivide(part_.stored_shape[0], block_.rows);
    PENSTOCK_RETURN_IF_ERROR(
        checkpoint_.Read(*stored_.scales, (part_.matrix * rows + block_row) * stored_scales_.size(),
                         stored_scales_.size(), stored_scales_.data()));
    const std::uint64_t bytes = ScaleBytes(scale_type_);
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      scales_[i] = Scale(scale_type_, stored_scales_.data() + i * bytes);
    }
    block_row_ = block_row;
    return absl::OkStatus();
  }

  float Value(std::uint64_t column) const {
    if (fp8_) return E4m3Table()[values_[column]];
    return kE2m1[(values_[column / 2] >> (column % 2 * 4)) & 15u];
  }

  const Checkpoint& checkpoint_;
  const WeightPart& part_;
  const StoredMatrix stored_;
  const bool fp8_;
  const Fp8Block block_;
  const std::uint64_t columns_;
  std::vector<std::uint8_t> values_;  // of one row
  const std::string_view scale_type_;
  std::vector<float> scales_;  // of one row of blocks
  std::vector<std::uint8_t> stored_scales_;
  std::uint64_t block_row_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace

StoredMatrix FindStored(const Checkpoint& checkpoint, const WeightPart& part) {
  if (const CheckpointTensor* tensor = checkpoint.Find(part.tensor)) {
    if (tensor->info->type != kFp8Type) return {StoredMatrix::Encoding::kPlain, tensor, nullptr};
    return {StoredMatrix::Encoding::kFp8, tensor,
            checkpoint.Find(part.tensor + std::string(kFp8Scales))};
  }
  const CheckpointTensor* blocks = checkpoint.Find(part.tensor + std::string(kMxfp4Blocks));
  if (blocks == nullptr) return {};
  return {StoredMatrix::Encoding::kMxfp4, blocks,
          checkpoint.Find(part.tensor + std::string(kMxfp4Scales))};
}

absl::Status CheckStored(const Checkpoint& checkpoint, const WeightPlan& plan,
                         const WeightPart& part) {
  const StoredMatrix stored = FindStored(checkpoint, part);
  switch (stored.encoding) {
    case StoredMatrix::Encoding::kFp8:
      return CheckFp8(checkpoint, plan, part, stored);
    case StoredMatrix::Encoding::kMxfp4:
      return CheckMxfp4(checkpoint, part, stored);
    case StoredMatrix::Encoding::kPlain:
      break;
  }
  return CheckPlain(checkpoint, part, stored);
}

namespace {

// As ReadExpanded, of an FP8 matrix whose transpose the file has.
absl::Status ReadTransposed(const Checkpoint& checkpoint, const WeightPlan& plan,
                            const WeightPart& part, std::uint64_t row, std::uint64_t count,
                            std::vector<float>& out) {
  WeightPart stored = part;
  stored.transposed = false;
  std::swap(stored.stored_shape[0], stored.stored_shape[1]);
  stored.rows = part.columns;
  stored.columns = {part.rows.first + row, count};
  std::vector<float> lines;
  PENSTOCK_RETURN_IF_ERROR(ReadExpanded(checkpoint, plan, stored, 0, stored.rows.count, lines));
  out.resize(lines.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::uint64_t j = 0; j < part.columns.count; ++j) {
      out[i * part.columns.count + j] = lines[j * count + i];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadExpanded(const Checkpoint& checkpoint, const WeightPlan& plan,
                          const WeightPart& part, std::uint64_t row, std::uint64_t count,
                          std::vector<float>& out) {
  // MXFP4 matrices have the form of the part, whatever the plain form of their type is.
  const bool fp8 = FindStored(checkpoint, part).encoding == StoredMatrix::Encoding::kFp8;
  if (fp8 && part.transposed) return ReadTransposed(checkpoint, plan, part, row, count, out);
  RowReader reader(checkpoint, plan, part);
  out.resize(count * part.columns.count);
  for (std::uint64_t i = 0; i < count; ++i) {
    PENSTOCK_RETURN_IF_ERROR(reader.Read(part.rows.first + (row + i) * part.row_step,
                                         out.data() + i * part.columns.count));
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
