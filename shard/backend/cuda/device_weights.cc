#include "shard/backend/cuda/device_weights.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "common/status.h"

namespace penstock::shard::cuda {
namespace {

// By index of a weight: whether it may be quantized. Layers may differ in width, so columns_of
// (index) gives that of the matrix itself.
template <class ColumnsOf>
std::vector<bool> MatricesOfLayers(const Program& program, std::size_t count,
                                   const ColumnsOf& columns_of) {
  std::vector<bool> found(count, false);
  for (const Op& op : program.body) {
    if (const auto* linear = std::get_if<LinearOp>(&op); linear != nullptr) {
      const auto index = static_cast<std::size_t>(linear->weight);
      found[index] = columns_of(index) % SkinnyStep(WeightForm::kFp8) == 0;
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
  const std::vector<bool> quantized =
      MatricesOfLayers(program, plan.targets.size(),
                       [&plan](std::size_t index) { return plan.targets[index].columns; });
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < plan.targets.size(); ++i) {
    const WeightTarget& target = plan.targets[i];
    bytes += quantized[i] ? target.Elements() + target.rows * sizeof(float)
                          : target.Elements() * DTypeBytes(dtype);
  }
  return bytes;
}

absl::Status DeviceWeights::Load(const Program& program, const WeightSource& source,
                                 const LoadProgress& progress, WeightForm form) {
  const auto count = static_cast<std::size_t>(source.Count());
  std::vector<bool> quantized(count, false);
  if (form != WeightForm::kPlain) {
    quantized = MatricesOfLayers(program, count, [&source](std::size_t index) {
      return static_cast<std::uint64_t>(source.Columns(static_cast<std::int32_t>(index)));
    });
  }
  PENSTOCK_ASSIGN_OR_RETURN(WeightUploader uploader,
                            WeightUploader::Create(gpu_, source, progress));
  for (std::size_t i = 0; i < count; ++i) {
    if (!quantized[i]) continue;
    most_expanded_ = std::max(most_expanded_, uploader.BytesOf(static_cast<std::int32_t>(i)));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory plain, GpuMemory::OnDevice(gpu_, most_expanded_));
  for (std::size_t i = 0; i < count; ++i) {
    PENSTOCK_RETURN_IF_ERROR(Add(uploader, static_cast<std::int32_t>(i),
                                 quantized[i] ? form : WeightForm::kPlain, plain));
  }
  return gpu_.Synchronize();
}

// A matrix to quantize is uploaded to `plain` first.
absl::Status DeviceWeights::Add(WeightUploader& uploader, std::int32_t index, WeightForm form,
                                const GpuMemory& plain) {
  Matrix& to = all_.emplace_back();
  to.rows = static_cast<std::uint32_t>(uploader.source().Rows(index));
  to.columns = static_cast<std::uint32_t>(uploader.source().Columns(index));
  if (form == WeightForm::kPlain) {
    PENSTOCK_ASSIGN_OR_RETURN(to.data, GpuMemory::OnDevice(gpu_, uploader.BytesOf(index)));
    return uploader.Upload(index, to.data.data());
  }
  to.form = form;
  const std::uint64_t elements = std::uint64_t{to.rows} * to.columns;
  PENSTOCK_ASSIGN_OR_RETURN(to.data, GpuMemory::OnDevice(gpu_, elements));
  PENSTOCK_ASSIGN_OR_RETURN(to.scales, GpuMemory::OnDevice(gpu_, to.rows * sizeof(float)));
  PENSTOCK_RETURN_IF_ERROR(uploader.Upload(index, plain.data()));
  return QuantizeRows({plain.data(), to.data.data(), static_cast<float*>(to.scales.data()), to.rows,
                       to.columns, form},
                      gpu_.stream());
}

std::uint64_t DeviceWeights::bytes() const {
  std::uint64_t bytes = 0;
  for (const Matrix& matrix : all_) bytes += matrix.data.bytes() + matrix.scales.bytes();
  return bytes;
}

}  // namespace penstock::shard::cuda
