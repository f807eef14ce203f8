#include "shard/weights/formats/fp8_matrix.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "shard/weights/formats/block_scaled.h"
#include "shard/weights/formats/module_list.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

// The shapes that a grid of scales may have: [rows, columns] and, where one is 1, shorter ones.
std::vector<TensorShape> GridShapes(const WeightPart& part, std::uint64_t rows,
                                    std::uint64_t columns) {
  std::vector<TensorShape> shapes = {Stacked(part, {rows, columns})};
  if (columns == 1) shapes.push_back(Stacked(part, {rows}));
  if (columns == 1 && rows == 1) shapes.push_back(Stacked(part, {}));
  return shapes;
}

}  // namespace

absl::StatusOr<QuantizedMatrixPtr> OpenFp8(const Checkpoint& checkpoint, const WeightPart& part,
                                           const Fp8Scales& scales) {
  const CheckpointTensor* values = checkpoint.Find(part.tensor);
  if (part.stored_shape.size() != 2 || (part.transposed && part.row_step != 1)) {
    return BadTensorType(checkpoint, *values, "F32, BF16 and F16 here");
  }
  TensorShape shape = part.stored_shape;
  if (part.transposed) std::swap(shape[0], shape[1]);
  PENSTOCK_RETURN_IF_ERROR(CheckShape(checkpoint, values, part.tensor, {Stacked(part, shape)}));
  BlockScaledMatrix::Layout layout{
      .rows = shape[0],
      .columns = shape[1],
      .matrix = part.matrix,
      .values = {.tensor = values, .table = E4m3Table().data(), .row_bytes = shape[1]},
      .scales = {.block_rows = scales.block_rows == 0 ? shape[0] : scales.block_rows,
                 .block_columns = scales.block_columns == 0 ? shape[1] : scales.block_columns}};
  PENSTOCK_ASSIGN_OR_RETURN(
      layout.scales.tensor,
      RequireTensor(checkpoint, scales.name,
                    GridShapes(part, CeilDivide(shape[0], layout.scales.block_rows),
                               CeilDivide(shape[1], layout.scales.block_columns)),
                    {"F32", "BF16", "F16", "F8_E8M0"}));
  layout.scales.type = layout.scales.tensor->info->type;
  std::vector<const CheckpointTensor*> tensors = {values, layout.scales.tensor};
  const std::string module(ModuleOf(part.tensor));
  AddIfStored(checkpoint, module, {".input_scale", ".input_scale_ub", ".activation_scale"},
              tensors);
  AddIfStored(checkpoint, part.tensor, {"_activation_scale"}, tensors);  // of a stack of experts
  auto matrix =
      std::make_unique<BlockScaledMatrix>(checkpoint, std::move(layout), std::move(tensors));
  if (part.transposed) return std::make_unique<TransposedMatrix>(std::move(matrix));
  return matrix;
}

}  // namespace penstock::shard
