// libtorch's names for ours.
#pragma once

#include <cstdint>
#include <vector>

#include "common/dtype.h"
#include "shard/backend/reference/pch.h"
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
