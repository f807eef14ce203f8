// The weights of a rank on the device. Matrices of a model's layers may be quantized while they are
// loaded, by the device itself.
//
// Quantized are the matrices of linear operations of the body whose rows have a multiple of 64
// columns. The embedding and the head stay plain, as in most quantized checkpoints: their errors
// would reach the logits directly.
//
// Rows go through two pinned buffers: one is read by several threads while the other is copied to
// the device. The host never holds the model.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/weight_uploader.h"
#include "shard/model/program.h"
#include "shard/weights/loader.h"
#include "shard/weights/quantization.h"
#include "shard/weights/weight_plan.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard::cuda {

constexpr WeightForm FormOf(Quantization quantization) {
  switch (quantization) {
    case Quantization::kNone:
    case Quantization::kInt4:  // which CheckQuantization refuses
      break;
    case Quantization::kInt8:
      return WeightForm::kInt8;
    case Quantization::kFp8:
      return WeightForm::kFp8;
  }
  return WeightForm::kPlain;
}

// Bytes of the weights of a plan on the device.
std::uint64_t DeviceWeightBytes(const Program& program, const WeightPlan& plan, DType dtype,
                                WeightForm form);

class DeviceWeights {
 public:
  explicit DeviceWeights(Gpu& gpu) : gpu_(gpu) {}

  // `form` other than kPlain: the source gives bfloat16. Waits. Cancelled if `progress`, which may
  // be null, returns false.
  absl::Status Load(const Program& program, const WeightSource& source,
                    const LoadProgress& progress, WeightForm form);

  // kNoWeight: null.
  const void* Of(std::int32_t index) const {
    return index == kNoWeight ? nullptr : At(index).data.data();
  }
  std::uint32_t RowsOf(std::int32_t index) const { return At(index).rows; }
  std::uint32_t ColumnsOf(std::int32_t index) const { return At(index).columns; }
  WeightForm FormOf(std::int32_t index) const { return At(index).form; }
  const float* ScalesOf(std::int32_t index) const {
    return static_cast<const float*>(At(index).scales.data());
  }

  // The bytes in bfloat16 of the largest quantized matrix; 0 if there is none.
  std::uint64_t MostExpandedBytes() const { return most_expanded_; }
  std::uint64_t bytes() const;

 private:
  struct Matrix {
    GpuMemory data;
    GpuMemory scales;  // empty for kPlain
    WeightForm form = WeightForm::kPlain;
    std::uint32_t rows = 0;
    std::uint32_t columns = 0;
  };
  const Matrix& At(std::int32_t index) const { return all_[static_cast<std::size_t>(index)]; }
  absl::Status Add(WeightUploader& uploader, std::int32_t index, WeightForm form,
                   const GpuMemory& plain);

  Gpu& gpu_;
  std::vector<Matrix> all_;
  std::uint64_t most_expanded_ = 0;
};

}  // namespace penstock::shard::cuda
