// How a checkpoint stores quantised matrices, as `quantization_config` of config.json says. One
// file of this folder per family of formats; readers get rows of float32. Activations are computed
// in the dtype of the model, whatever the format says of them.
//
// Threading: formats and matrices are immutable; Expand may be called from several threads.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shard/weights/checkpoint.h"
#include "shard/weights/config_reader.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

// Rows of a matrix of 4-bit integers: weight = (value - zero) * scale, with value and zero in
// [0, 15]. Scales and zero points are those of kInt4Columns columns each.
struct Int4Rows {
  float* values = nullptr;  // [rows][columns]
  float* scales = nullptr;  // [rows][columns / kInt4Columns, rounded up]
  float* zeros = nullptr;
};
inline constexpr std::uint64_t kInt4Columns = 32;

// A matrix of the checkpoint, with the tensors that hold it. The checkpoint outlives it.
class QuantizedMatrix {
 public:
  explicit QuantizedMatrix(std::vector<const CheckpointTensor*> tensors)
      : tensors_(std::move(tensors)) {}
  virtual ~QuantizedMatrix() = default;
  QuantizedMatrix(const QuantizedMatrix&) = delete;
  QuantizedMatrix& operator=(const QuantizedMatrix&) = delete;

  // Also those that only a product of quantised activations would need.
  const std::vector<const CheckpointTensor*>& tensors() const { return tensors_; }

  // These rows and columns as floats, row by row. Each is computed in float32, by the operations of
  // the format's own library, in their order.
  virtual absl::Status Expand(Range rows, Range columns, float* out) const = 0;

  // Whether ReadInt4 can give these columns: they are integers of 4 bits, and each kInt4Columns of
  // them share a scale.
  virtual bool HasInt4(Range) const { return false; }
  // Expand of the result gives the bits of Expand.
  virtual absl::Status ReadInt4(Range, Range, const Int4Rows&) const {
    return absl::UnimplementedError("not a matrix of 4-bit integers");
  }

 protected:
  // Whether blocks of `block` columns, of which there are `count` in all, fit kInt4Columns.
  static bool FitInt4(Range columns, std::uint64_t block, std::uint64_t count) {
    return columns.first % kInt4Columns == 0 && (block % kInt4Columns == 0 || block >= count);
  }

 private:
  const std::vector<const CheckpointTensor*> tensors_;
};

using QuantizedMatrixPtr = std::unique_ptr<const QuantizedMatrix>;

class StoredFormat {
 public:
  explicit StoredFormat(std::string name) : name_(std::move(name)) {}
  virtual ~StoredFormat() = default;
  StoredFormat(const StoredFormat&) = delete;
  StoredFormat& operator=(const StoredFormat&) = delete;

  // For messages: "gptq, 4 bits".
  const std::string& name() const { return name_; }

  // The matrix of the part, if the checkpoint stores it quantised; null if not. The tensors have
  // been checked: an error is one line that names file, tensor, what it has and what it must have.
  virtual absl::StatusOr<QuantizedMatrixPtr> Open(const Checkpoint& checkpoint,
                                                  const WeightPart& part) const = 0;

 private:
  const std::string name_;
};

using StoredFormatPtr = std::shared_ptr<const StoredFormat>;

// Reads `quantization_config`. A key that is not known is an error, since it may change answers.
using ReadFormat = absl::StatusOr<StoredFormatPtr>(const ConfigReader& config);

// By the `quant_method` of the object.
ReadFormat ReadStoredFormat;

}  // namespace penstock::shard
