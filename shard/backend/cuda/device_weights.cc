#include "shard/backend/cuda/device_weights.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/status.h"

namespace penstock::shard::cuda {
namespace {

// By index of a weight: whether it may be quantized.
std::vector<bool> MatricesOfLayers(const Program& program, std::size_t count) {
  std::vector<bool> found(count, false);
  for (const Op& op : program.body) {
    if (const auto* linear = std::get_if<LinearOp>(&op); linear != nullptr) {
      found[static_cast<std::size_t>(linear->weight)] =
          program.Width(linear->in) % SkinnyStep(WeightForm::kFp8) == 0;
    }
  }
  for (const Op& op : program.head) {
    if (const auto* linear = std::get_if<LinearOp>(&op); linear != nullptr) {
      found[static_cast<std::size_t>(linear->weight)] = false;
    }
  }
  return found;
}

}  // namespace

std::uint64_t DeviceWeightBytes(const Program& program, const WeightPlan& plan, DType dtype,
                                WeightForm form) {
  if (form == WeightForm::kPlain) return plan.Bytes(dtype);
  const std::vector<bool> quantized = MatricesOfLayers(program, plan.targets.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    const WeightTarget& target = plan.targets[i];
    bytes += quantized[i] ? target.Elements() + target.rows * sizeof(float)
                          : target.Elements() * DTypeBytes(dtype);
  }
  return bytes;
}

absl::Status DeviceWeights::Load(const Program& program, const LoadedWeights& weights,
                                 WeightForm form) {
  std::vector<bool> quantized(weights.views.size(), false);
  if (form != WeightForm::kPlain) quantized = MatricesOfLayers(program, weights.views.size());
  for (std::size_t i = 0; i < weights.views.size(); ++i) {
    if (quantized[i]) most_expanded_ = std::max(most_expanded_, weights.views[i].Bytes());
  }
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory plain, GpuMemory::OnDevice(gpu_, most_expanded_));
  for (std::size_t i = 0; i < weights.views.size(); ++i) {
    Matrix matrix;
    PENSTOCK_RETURN_IF_ERROR(quantized[i] ? Quantize(weights.views[i], form, plain, matrix)
                                          : Upload(weights.views[i], matrix));
    all_.push_back(std::move(matrix));
  }
  return gpu_.Synchronize();
}

absl::Status DeviceWeights::Upload(const TensorView& view, Matrix& to) {
  PENSTOCK_ASSIGN_OR_RETURN(to.data, GpuMemory::OnDevice(gpu_, view.Bytes()));
  return gpu_.Upload(to.data.data(), view.data, view.Bytes());
}

absl::Status DeviceWeights::Quantize(const TensorView& view, WeightForm form,
                                     const GpuMemory& plain, Matrix& to) {
  const auto rows = static_cast<std::uint32_t>(view.shape[0]);
  const auto width = static_cast<std::uint32_t>(view.shape[1]);
  to.form = form;
  PENSTOCK_ASSIGN_OR_RETURN(to.data, GpuMemory::OnDevice(gpu_, std::uint64_t{rows} * width));
  PENSTOCK_ASSIGN_OR_RETURN(to.scales, GpuMemory::OnDevice(gpu_, rows * sizeof(float)));
  PENSTOCK_RETURN_IF_ERROR(gpu_.Upload(plain.data(), view.data, view.Bytes()));
  return QuantizeRows({plain.data(), to.data.data(), static_cast<float*>(to.scales.data()), rows,
                       width, form},
                      gpu_.stream());
}

std::uint64_t DeviceWeights::bytes() const {
  std::uint64_t bytes = 0;
  for (const Matrix& matrix : all_) bytes += matrix.data.bytes() + matrix.scales.bytes();
  return bytes;
}

}  // namespace penstock::shard::cuda
