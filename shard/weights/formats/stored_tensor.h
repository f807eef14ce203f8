// Finding, checking and reading the tensors of quantised matrices.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "shard/weights/checkpoint.h"
#include "shard/weights/config_reader.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

using TensorShape = std::vector<std::uint64_t>;

// "model.safetensors: tensor NAME".
std::string TensorText(const Checkpoint& checkpoint, const CheckpointTensor& tensor);

// Whether the tensor, which may be null, has one of the shapes; the first is the one that a message
// names. `name` is for a tensor that is missing.
absl::Status CheckShape(const Checkpoint& checkpoint, const CheckpointTensor* tensor,
                        const std::string& name, const std::vector<TensorShape>& shapes);

absl::Status BadTensorType(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                           const std::string& wanted);

// The tensor `name`, with one of the shapes and types.
absl::StatusOr<const CheckpointTensor*> RequireTensor(
    const Checkpoint& checkpoint, const std::string& name, const std::vector<TensorShape>& shapes,
    std::initializer_list<std::string_view> types);

// Adds the tensors that exist.
void AddIfStored(const Checkpoint& checkpoint, const std::string& module,
                 std::initializer_list<std::string_view> names,
                 std::vector<const CheckpointTensor*>& tensors);

// The shape with the dimension of the part's stack, if it has one.
TensorShape Stacked(const WeightPart& part, TensorShape shape);

// The part's matrix as the plan counts it: rows are outputs, and there is no stack.
absl::Status RequirePlainMatrix(const Checkpoint& checkpoint, const CheckpointTensor& tensor,
                                const WeightPart& part);

// `count` values from the value `first`, of one of the types F32, BF16, F16, I8, F8_E4M3 and
// F8_E8M0.
absl::StatusOr<std::vector<float>> ReadFloats(const Checkpoint& checkpoint,
                                              const CheckpointTensor& tensor, std::string_view type,
                                              std::uint64_t first, std::uint64_t count);

// `count` values of type I32 from the value `first`.
absl::StatusOr<std::vector<std::uint32_t>> ReadWords(const Checkpoint& checkpoint,
                                                     const CheckpointTensor& tensor,
                                                     std::uint64_t first, std::uint64_t count);

// Rows and columns of a tensor of I32 whose rows have `width` values. Narrow columns are read row
// by row.
absl::StatusOr<std::vector<std::uint32_t>> ReadWordBlock(const Checkpoint& checkpoint,
                                                         const CheckpointTensor& tensor,
                                                         std::uint64_t width, Range rows,
                                                         Range columns);

// The same of floats.
absl::StatusOr<std::vector<float>> ReadFloatBlock(const Checkpoint& checkpoint,
                                                  const CheckpointTensor& tensor,
                                                  std::uint64_t width, Range rows, Range columns);

// An I32 tensor [size] of groups below `groups`: the group of each column.
absl::StatusOr<std::vector<std::uint32_t>> ReadGroupIndex(const Checkpoint& checkpoint,
                                                          const CheckpointTensor& tensor,
                                                          std::uint64_t groups);

// `group_size`, which must be there: 0 if it is -1, and all columns have one scale.
absl::StatusOr<std::uint64_t> ReadGroupSize(const ConfigReader& config, std::string_view key);

constexpr std::uint64_t CeilDivide(std::uint64_t value, std::uint64_t by) {
  return (value + by - 1) / by;
}

}  // namespace penstock::shard
