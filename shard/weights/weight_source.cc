#include "shard/weights/weight_source.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "common/status.h"
#include "shard/weights/convert.h"
#include "shard/weights/stored_matrix.h"

namespace penstock::shard {

absl::Status CheckpointSource::ReadRows(std::int32_t index, std::uint64_t first,
                                        std::uint64_t count, void* out) const {
  const WeightTarget& target = Target(index);
  const std::uint64_t row_bytes = target.columns * DTypeBytes(dtype_);
  char* rows = static_cast<char*>(out);
  std::uint64_t covered = 0;
  for (const WeightPart& part : target.parts) covered += part.rows.count;
  if (covered < target.rows)
    std::memset(rows, 0, count * row_bytes);  // for rows that no part covers
  for (const WeightPart& part : target.parts) {
    const std::uint64_t begin = std::max(first, part.target_row);
    const std::uint64_t end = std::min(first + count, part.target_row + part.rows.count);
    if (begin >= end) continue;
    PENSTOCK_RETURN_IF_ERROR(
        ReadPart(part, begin - part.target_row, end - begin, rows + (begin - first) * row_bytes));
  }
  return absl::OkStatus();
}

bool CheckpointSource::HasInt4(std::int32_t index) const {
  const WeightTarget& target = Target(index);
  const auto has = [this](const WeightPart& part) {
    const auto matrix = OpenQuantized(checkpoint_, plan_, part);
    return matrix.ok() && *matrix != nullptr && part.row_step == 1 &&
           (*matrix)->HasInt4(part.columns);
  };
  return !target.parts.empty() && std::all_of(target.parts.begin(), target.parts.end(), has);
}

absl::Status CheckpointSource::ReadInt4Rows(std::int32_t index, std::uint64_t first,
                                            std::uint64_t count, float* out) const {
  const WeightTarget& target = Target(index);
  const std::uint64_t columns = target.columns, floats = Int4RowFloats(columns);
  const std::uint64_t groups = (floats - columns) / 2;
  std::fill_n(out, count * floats, 0.0f);  // for rows that no part covers
  std::vector<float> values, scales, zeros;
  for (const WeightPart& part : target.parts) {
    const std::uint64_t begin = std::max(first, part.target_row);
    const std::uint64_t end = std::min(first + count, part.target_row + part.rows.count);
    if (begin >= end) continue;
    const std::uint64_t rows = end - begin;
    values.resize(rows * columns);
    scales.resize(rows * groups);
    zeros.resize(rows * groups);
    PENSTOCK_ASSIGN_OR_RETURN(const auto matrix, OpenQuantized(checkpoint_, plan_, part));
    PENSTOCK_RETURN_IF_ERROR(matrix->ReadInt4({part.rows.first + begin - part.target_row, rows},
                                              part.columns,
                                              {values.data(), scales.data(), zeros.data()}));
    float* row = out + (begin - first) * floats;
    for (std::uint64_t i = 0; i < rows; ++i, row += floats) {
      std::copy_n(values.data() + i * columns, columns, row);
      std::copy_n(scales.data() + i * groups, groups, row + columns);
      std::copy_n(zeros.data() + i * groups, groups, row + columns + groups);
    }
  }
  return absl::OkStatus();
}

// Rows [row, row + count) of the part.
absl::Status CheckpointSource::ReadPart(const WeightPart& part, std::uint64_t row,
                                        std::uint64_t count, char* out) const {
  PENSTOCK_ASSIGN_OR_RETURN(const auto matrix, OpenQuantized(checkpoint_, plan_, part));
  if (matrix != nullptr) {
    const std::uint64_t values = count * part.columns.count;
    const auto rows = std::make_unique_for_overwrite<float[]>(values);
    PENSTOCK_RETURN_IF_ERROR(ReadExpanded(*matrix, part, row, count, rows.get()));
    ConvertElements(rows.get(), DType::kFloat32, out, dtype_, values);
    return absl::OkStatus();
  }
  if (part.transposed) return ReadTransposed(part, row, count, out);
  const CheckpointTensor& tensor = *checkpoint_.Find(part.tensor);
  const DType stored = *tensor.info->dtype;
  const std::uint64_t stored_columns =
      std::accumulate(part.stored_shape.begin() + 1, part.stored_shape.end(), std::uint64_t{1},
                      std::multiplies<>());
  const std::uint64_t stored_row = stored_columns * DTypeBytes(stored);
  const std::uint64_t columns = part.columns.count;
  const std::uint64_t first_row =
      part.matrix * part.stored_shape[0] + part.rows.first + row * part.row_step;
  const std::uint64_t offset = first_row * stored_row;
  if (columns == stored_columns && stored == dtype_ && part.row_step == 1) {
    return checkpoint_.Read(tensor, offset, count * stored_row, out);
  }
  // A column slice is strided in the file, so its rows are read whole; so are rows between.
  const std::uint64_t bytes = ((count - 1) * part.row_step + 1) * stored_row;
  const auto staging = std::make_unique_for_overwrite<char[]>(bytes);
  PENSTOCK_RETURN_IF_ERROR(checkpoint_.Read(tensor, offset, bytes, staging.get()));
  for (std::uint64_t i = 0; i < count; ++i) {
    const char* from =
        staging.get() + i * part.row_step * stored_row + part.columns.first * DTypeBytes(stored);
    ConvertElements(from, stored, out + i * columns * DTypeBytes(dtype_), dtype_, columns);
  }
  return absl::OkStatus();
}

absl::Status CheckpointSource::ReadTransposed(const WeightPart& part, std::uint64_t row,
                                              std::uint64_t count, char* out) const {
  const CheckpointTensor& tensor = *checkpoint_.Find(part.tensor);
  PENSTOCK_ASSIGN_OR_RETURN(const auto whole, WholeMatrix(tensor, part));
  const DType stored = *tensor.info->dtype;
  const std::uint64_t columns = part.columns.count;
  const std::uint64_t size = DTypeBytes(stored);
  std::vector<char> line(columns * size);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t stored_column = part.rows.first + (row + i) * part.row_step;
    for (std::uint64_t j = 0; j < columns; ++j) {
      const std::uint64_t at = (part.columns.first + j) * part.stored_shape[0] + stored_column;
      std::memcpy(line.data() + j * size, whole->data() + at * size, size);
    }
    ConvertElements(line.data(), stored, out + i * columns * DTypeBytes(dtype_), dtype_, columns);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const std::vector<char>>> CheckpointSource::WholeMatrix(
    const CheckpointTensor& tensor, const WeightPart& part) const {
  const std::lock_guard lock(mutex_);
  if (kept_ == &tensor && kept_matrix_ == part.matrix) return kept_bytes_;
  const std::uint64_t bytes =
      part.stored_shape[0] * part.stored_shape[1] * DTypeBytes(*tensor.info->dtype);
  auto whole = std::make_shared<std::vector<char>>(bytes);
  PENSTOCK_RETURN_IF_ERROR(checkpoint_.Read(tensor, part.matrix * bytes, bytes, whole->data()));
  kept_ = &tensor;
  kept_matrix_ = part.matrix;
  kept_bytes_ = whole;
  return kept_bytes_;
}

std::string CheckpointSource::Identity() const {
  std::string text = checkpoint_.Identity();
  if (text.empty()) return text;
  text += "computed in " + std::string(DTypeName(dtype_)) + "\n";
  for (const WeightTarget& target : plan_.targets) {
    text += target.name + " " + std::to_string(target.rows) + " " + std::to_string(target.columns);
    for (const WeightPart& part : target.parts) {
      text += " " + part.tensor;
      for (const std::uint64_t number :
           {part.rows.first, part.rows.count, part.columns.first, part.columns.count,
            part.target_row, part.matrix, part.row_step}) {
        text += "," + std::to_string(number);
      }
    }
    text += "\n";
  }
  return text;
}

absl::Status LoadedSource::ReadRows(std::int32_t index, std::uint64_t first, std::uint64_t count,
                                    void* out) const {
  const std::uint64_t row_bytes = Columns(index) * DTypeBytes(dtype());
  std::memcpy(out, static_cast<const char*>(View(index).data) + first * row_bytes,
              count * row_bytes);
  return absl::OkStatus();
}

}  // namespace penstock::shard
