#include "shard/weights/stored_matrix.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

absl::Status CheckPlain(const Checkpoint& checkpoint, const WeightPlan& plan,
                        const WeightPart& part) {
  const CheckpointTensor* tensor = checkpoint.Find(part.tensor);
  TensorShape shape = part.stored_shape;
  if (part.transposed) std::swap(shape[0], shape[1]);
  PENSTOCK_RETURN_IF_ERROR(CheckShape(checkpoint, tensor, part.tensor, {Stacked(part, shape)}));
  if (tensor->info->dtype.has_value()) return absl::OkStatus();
  const bool unsaid = plan.format == nullptr && tensor->info->type == "F8_E4M3";
  return BadTensorType(
      checkpoint, *tensor,
      unsaid ? "it if config.json has a `quantization_config` that fits" : "F32, BF16 and F16");
}

}  // namespace

absl::StatusOr<QuantizedMatrixPtr> OpenQuantized(const Checkpoint& checkpoint,
                                                 const WeightPlan& plan, const WeightPart& part) {
  if (plan.format == nullptr || part.stored_shape.size() < 2) return nullptr;
  return plan.format->Open(checkpoint, part);
}

absl::Status CheckStored(const Checkpoint& checkpoint, const WeightPlan& plan,
                         const WeightPart& part) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto matrix, OpenQuantized(checkpoint, plan, part));
  return matrix == nullptr ? CheckPlain(checkpoint, plan, part) : absl::OkStatus();
}

absl::Status ReadExpanded(const QuantizedMatrix& matrix, const WeightPart& part, std::uint64_t row,
                          std::uint64_t count, float* out) {
  const Range columns = part.columns;
  const std::uint64_t step = part.row_step;
  const Range rows{part.rows.first + row * step, (count - 1) * step + 1};
  if (step == 1) return matrix.Expand(rows, columns, out);
  std::vector<float> all(rows.count * columns.count);
  PENSTOCK_RETURN_IF_ERROR(matrix.Expand(rows, columns, all.data()));
  for (std::uint64_t i = 0; i < count; ++i) {
    std::copy_n(all.data() + i * step * columns.count, columns.count, out + i * columns.count);
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
