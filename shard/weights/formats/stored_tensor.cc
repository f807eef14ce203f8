#include "shard/weights/formats/stored_tensor.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "common/status.h"
#include "shard/weights/convert.h"
#include "shard/weights/formats/number_tables.h"

namespace penstock::shard {
namespace {

std::string ListOf(std::initializer_list<std::string_view> names) {
  std::string text;
  std::size_t left = names.size();
  for (const std::string_view name : names) {
    --left;
    text += std::string(name) + (left == 0 ? "" : left == 1 ? " and " : ", ");
  }
  return text;
}

std::uint64_t TypeBytes(std::string_view type) {
  return type == "F32" ? 4 : type == "BF16" || type == "F16" ? 2 : 1;
}

void DecodeFloats(std::string_view type, const std::vector<std::uint8_t>& bytes,
                  std::vector<float>& out) {
  if (type == "F32") {
    std::memcpy(out.data(), bytes.data(), bytes.size());
  } else if (type == "BF16" || type == "F16") {
    ConvertElements(bytes.data(), type == "F16" ? DType::kFloat16 : DType::kBFloat16, out.data(),
                    DType::kFloat32, out.size());
  } else {
    const ByteTable& table = type == "F8_E8M0" ? E8m0Table()
                             : type == "I8"    ? Int8Table()
                                               : E4m3Table();
    std::transform(bytes.begin(), bytes.end(), out.begin(),
                   [&table](std::uint8_t byte) { return table[byte]; });
  }
}

// Reads `bytes` bytes of each of these rows, from byte `first` on.
absl::Status ReadBytes(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                       std::uint64_t row_bytes, Range rows, std::uint64_t first,
                       std::uint64_t bytes, std::uint8_t* out) {
  if (bytes == row_bytes) {
    return checkpoint.Read(tensor, rows.first * row_bytes, rows.count * row_bytes, out);
  }
  for (std::uint64_t i = 0; i < rows.count; ++i) {
    PENSTOCK_RETURN_IF_ERROR(
        checkpoint.Read(tensor, (rows.first + i) * row_bytes + first, bytes, out + i * bytes));
  }
  return absl::OkStatus();
}

}  // namespace

std::string TensorText(const Checkpoint& checkpoint, const CheckpointTensor& tensor) {
  return checkpoint.FileName(tensor) + ": tensor " + tensor.info->name;
}

absl::Status CheckShape(const Checkpoint& checkpoint, const CheckpointTensor* tensor,
                        const std::string& name, const std::vector<TensorShape>& shapes) {
  const std::string wanted = "config.json asks for " + ShapeText(shapes.front());
  if (tensor == nullptr) {
    return absl::NotFoundError("tensor " + name + " is missing; " + wanted);
  }
  if (std::find(shapes.begin(), shapes.end(), tensor->info->shape) != shapes.end()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(TensorText(checkpoint, *tensor) + " has shape " +
                                    ShapeText(tensor->info->shape) + "; " + wanted);
}

absl::Status BadTensorType(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                           const std::string& wanted) {
  return absl::InvalidArgumentError(TensorText(checkpoint, tensor) + " has dtype " +
                                    std::string(tensor.info->type) + "; Penstock loads " + wanted);
}

absl::StatusOr<const CheckpointTensor*> RequireTensor(
    const Checkpoint& checkpoint, const std::string& name, const std::vector<TensorShape>& shapes,
    std::initializer_list<std::string_view> types) {
  const CheckpointTensor* tensor = checkpoint.Find(name);
  PENSTOCK_RETURN_IF_ERROR(CheckShape(checkpoint, tensor, name, shapes));
  if (std::find(types.begin(), types.end(), tensor->info->type) != types.end()) return tensor;
  return BadTensorType(checkpoint, *tensor, ListOf(types) + " here");
}

void AddIfStored(const Checkpoint& checkpoint, const std::string& module,
                 std::initializer_list<std::string_view> names,
                 std::vector<const CheckpointTensor*>& tensors) {
  for (const std::string_view name : names) {
    const CheckpointTensor* tensor = checkpoint.Find(module + std::string(name));
    if (tensor != nullptr) tensors.push_back(tensor);
  }
}

TensorShape Stacked(const WeightPart& part, TensorShape shape) {
  if (part.stack > 0) shape.insert(shape.begin(), part.stack);
  return shape;
}

absl::Status RequirePlainMatrix(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                                const WeightPart& part) {
  if (part.stored_shape.size() == 2 && part.stack == 0) return absl::OkStatus();
  return BadTensorType(checkpoint, tensor, "F32, BF16 and F16 here");
}

absl::StatusOr<std::vector<float>> ReadFloats(const Checkpoint& checkpoint,
                                              const CheckpointTensor& tensor, std::string_view type,
                                              std::uint64_t first, std::uint64_t count) {
  const std::uint64_t bytes = TypeBytes(type);
  std::vector<std::uint8_t> stored(count * bytes);
  PENSTOCK_RETURN_IF_ERROR(checkpoint.Read(tensor, first * bytes, stored.size(), stored.data()));
  std::vector<float> values(count);
  DecodeFloats(type, stored, values);
  return values;
}

absl::StatusOr<std::vector<std::uint32_t>> ReadWords(const Checkpoint& checkpoint,
                                                     const CheckpointTensor& tensor,
                                                     std::uint64_t first, std::uint64_t count) {
  return ReadWordBlock(checkpoint, tensor, 1, {first, count}, {0, 1});
}

absl::StatusOr<std::vector<std::uint32_t>> ReadWordBlock(const Checkpoint& checkpoint,
                                                         const CheckpointTensor& tensor,
                                                         std::uint64_t width, Range rows,
                                                         Range columns) {
  constexpr std::uint64_t kBytes = sizeof(std::uint32_t);
  std::vector<std::uint32_t> words(rows.count * columns.count);
  PENSTOCK_RETURN_IF_ERROR(ReadBytes(checkpoint, tensor, width * kBytes, rows,
                                     columns.first * kBytes, columns.count * kBytes,
                                     reinterpret_cast<std::uint8_t*>(words.data())));
  return words;
}

absl::StatusOr<std::vector<float>> ReadFloatBlock(const Checkpoint& checkpoint,
                                                  const CheckpointTensor& tensor,
                                                  std::uint64_t width, Range rows, Range columns) {
  const std::uint64_t bytes = TypeBytes(tensor.info->type);
  std::vector<std::uint8_t> stored(rows.count * columns.count * bytes);
  PENSTOCK_RETURN_IF_ERROR(ReadBytes(checkpoint, tensor, width * bytes, rows, columns.first * bytes,
                                     columns.count * bytes, stored.data()));
  std::vector<float> values(rows.count * columns.count);
  DecodeFloats(tensor.info->type, stored, values);
  return values;
}

absl::StatusOr<std::uint64_t> ReadGroupSize(const ConfigReader& config, std::string_view key) {
  PENSTOCK_ASSIGN_OR_RETURN(const double size, config.Number(key, -1, 1 << 20));
  if (size == -1) return 0;
  const auto whole = static_cast<std::uint64_t>(std::max(size, 0.0));
  if (whole == 0 || static_cast<double>(whole) != size) {
    return config.Bad(key, "an integer from 1 to 1048576, or -1");
  }
  return whole;
}

absl::StatusOr<std::vector<std::uint32_t>> ReadGroupIndex(const Checkpoint& checkpoint,
                                                          const CheckpointTensor& tensor,
                                                          std::uint64_t groups) {
  PENSTOCK_ASSIGN_OR_RETURN(auto index,
                            ReadWords(checkpoint, tensor, 0, tensor.info->shape.front()));
  const auto bad = std::find_if(index.begin(), index.end(),
                                [groups](std::uint32_t group) { return group >= groups; });
  if (bad == index.end()) return index;
  return absl::InvalidArgumentError(TensorText(checkpoint, tensor) + " has group " +
                                    std::to_string(static_cast<int>(*bad)) + " at column " +
                                    std::to_string(bad - index.begin()) + "; there are " +
                                    std::to_string(groups) + " groups");
}

}  // namespace penstock::shard
