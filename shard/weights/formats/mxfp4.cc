// MXFP4: NAME_blocks U8 [N, K / 32, 16], two E2M1 values a byte, the lower half first, and
// NAME_scales U8 [N, K / 32]: exponents of two, plus 127. A stack of matrices has one dimension
// more. The rows are outputs, whatever the plain form of the matrix is.
#include "common/status.h"
#include "shard/weights/formats/block_scaled.h"
#include "shard/weights/formats/module_list.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/formats/stored_tensor.h"

namespace penstock::shard {
namespace {

constexpr std::uint64_t kGroup = 32;  // values with one scale

class Mxfp4Format final : public StoredFormat {
 public:
  explicit Mxfp4Format(ModuleList plain) : StoredFormat("mxfp4"), plain_(std::move(plain)) {}

  absl::StatusOr<QuantizedMatrixPtr> Open(const Checkpoint& checkpoint,
                                          const WeightPart& part) const override {
    const CheckpointTensor* values = checkpoint.Find(part.tensor + "_blocks");
    if (values == nullptr) return nullptr;
    if (plain_.Names(ModuleOf(part.tensor))) {
      return BadTensorType(checkpoint, *values, "no blocks: config.json says it is not quantised");
    }
    const TensorShape& shape = part.stored_shape;
    if (shape.size() != 2 || shape[1] % kGroup != 0) {
      return absl::InvalidArgumentError(TensorText(checkpoint, *values) +
                                        " holds groups of 32 values; config.json asks for " +
                                        ShapeText(Stacked(part, shape)));
    }
    const std::uint64_t groups = shape[1] / kGroup;
    PENSTOCK_RETURN_IF_ERROR(RequireTensor(checkpoint, part.tensor + "_blocks",
                                           {Stacked(part, {shape[0], groups, kGroup / 2})}, {"U8"})
                                 .status());
    PENSTOCK_ASSIGN_OR_RETURN(const CheckpointTensor* scales,
                              RequireTensor(checkpoint, part.tensor + "_scales",
                                            {Stacked(part, {shape[0], groups})}, {"U8"}));
    BlockScaledMatrix::Layout layout{
        .rows = shape[0],
        .columns = shape[1],
        .matrix = part.matrix,
        .values = {.tensor = values, .bits = 4, .table = kE2m1.data(), .row_bytes = shape[1] / 2},
        .scales = {.tensor = scales, .type = "F8_E8M0", .block_columns = kGroup}};
    return std::make_unique<BlockScaledMatrix>(
        checkpoint, std::move(layout), std::vector<const CheckpointTensor*>{values, scales});
  }

 private:
  const ModuleList plain_;
};

}  // namespace

absl::StatusOr<StoredFormatPtr> ReadMxfp4(const ConfigReader& config) {
  PENSTOCK_RETURN_IF_ERROR(
      config.RefuseOthers({"quant_method", "modules_to_not_convert", "dequantize"}));
  PENSTOCK_ASSIGN_OR_RETURN(ModuleList plain, ModuleList::Read(config, "modules_to_not_convert",
                                                               ModuleList::Rule::kPrefixOrSuffix));
  return std::make_shared<Mxfp4Format>(std::move(plain));
}

}  // namespace penstock::shard
