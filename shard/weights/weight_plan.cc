#include "shard/weights/weight_plan.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "common/round_up.h"
#include "common/status.h"
#include "shard/weights/stored_matrix.h"

namespace penstock::shard {
namespace {

bool IsIgnored(const WeightPlan& plan, const std::string& name) {
  return std::any_of(plan.ignored_suffixes.begin(), plan.ignored_suffixes.end(),
                     [&name](const std::string& suffix) { return name.ends_with(suffix); }) ||
         std::any_of(plan.ignored_prefixes.begin(), plan.ignored_prefixes.end(),
                     [&name](const std::string& prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::uint64_t WeightPlan::Elements() const {
  std::uint64_t sum = 0;
  for (const WeightTarget& target : targets) sum += target.Elements();
  return sum;
}

std::uint64_t WeightPlan::Bytes(DType dtype) const {
  std::uint64_t sum = 0;
  for (const WeightTarget& target : targets) {
    const std::uint64_t bytes = target.Elements() * DTypeBytes(dtype);
    sum += RoundUp(bytes, kCacheLineBytes);
  }
  return sum;
}

absl::Status CheckTarget(const Checkpoint& checkpoint, const WeightPlan& plan,
                         const WeightTarget& target) {
  for (const WeightPart& part : target.parts) {
    PENSTOCK_RETURN_IF_ERROR(CheckStored(checkpoint, plan, part));
  }
  return absl::OkStatus();
}

absl::Status CheckParts(const Checkpoint& checkpoint, const WeightPlan& plan) {
  for (const WeightTarget& target : plan.targets) {
    PENSTOCK_RETURN_IF_ERROR(CheckTarget(checkpoint, plan, target));
  }
  return absl::OkStatus();
}

absl::StatusOr<QuantizedCount> CountQuantized(const Checkpoint& checkpoint,
                                              const WeightPlan& plan) {
  QuantizedCount count;
  if (plan.format == nullptr) return count;
  std::set<std::pair<const CheckpointTensor*, std::uint64_t>> matrices;
  std::set<const CheckpointTensor*> tensors;
  for (const WeightTarget& target : plan.targets) {
    for (const WeightPart& part : target.parts) {
      PENSTOCK_ASSIGN_OR_RETURN(const auto matrix, OpenQuantized(checkpoint, plan, part));
      if (matrix == nullptr) continue;
      count.elements += part.rows.count * part.columns.count;
      matrices.emplace(matrix->tensors().front(), part.matrix);
      tensors.insert(matrix->tensors().begin(), matrix->tensors().end());
    }
  }
  for (const CheckpointTensor* tensor : tensors) count.bytes += tensor->info->bytes;
  count.matrices = matrices.size();
  return count;
}

absl::Status CheckAllConsumed(const Checkpoint& checkpoint, const WeightPlan& plan) {
  std::unordered_set<std::string_view> used;
  for (const WeightTarget& target : plan.targets) {
    for (const WeightPart& part : target.parts) {
      PENSTOCK_ASSIGN_OR_RETURN(const auto matrix, OpenQuantized(checkpoint, plan, part));
      if (matrix == nullptr) {
        used.insert(part.tensor);
        continue;
      }
      for (const CheckpointTensor* tensor : matrix->tensors()) used.insert(tensor->info->name);
    }
  }
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const std::string& name = tensor.info->name;
    if (used.contains(name) || IsIgnored(plan, name)) continue;
    return absl::InvalidArgumentError(checkpoint.FileName(tensor) + ": tensor " + name + " " +
                                      ShapeText(tensor.info->shape) +
                                      " has no place in this model type");
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
