// libtorch's names for ours.
#pragma once

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

}  // namespace penstock::shard
