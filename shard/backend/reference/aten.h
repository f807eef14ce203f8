// libtorch's names for ours, and its headers. Never torch/torch.h or ATen/ATen.h: they cost ten
// seconds per file.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstdint>
#include <vector>

#include "common/dtype.h"
#include "shard/tensor_view.h"

namespace penstock::shard {

inline at::ScalarType ToScalarType(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return at::kFloat;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kFloat16:
      return at::kHalf;
  }
  return at::kFloat;
}

inline at::Device ToAtDevice(Device device) {
  if (device.kind == Device::Kind::kCpu) return at::Device(at::kCPU);
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(device.index));
}

// A copy of `values` on the device, int64.
inline at::Tensor Indexes(const std::vector<std::int64_t>& values, at::Device device) {
  const auto size = static_cast<std::int64_t>(values.size());
  const at::Tensor host =
      at::from_blob(const_cast<std::int64_t*>(values.data()), {size}, at::kLong);
  return host.to(device, at::kLong, false, true);
}

}  // namespace penstock::shard
