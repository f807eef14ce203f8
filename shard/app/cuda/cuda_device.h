// A CUDA device as the engine sees it. Ranks with a device each join through NCCL, a single rank
// too; ranks of which any two have the same device, which NCCL refuses, join through host memory.
//
// Threading: as RankDevice.
#pragma once

#include <cstdint>
#include <string>

#include "shard/backend/cuda/gpu.h"
#include "shard/executor/rank_device.h"
#include "shard/parallel/device_queue.h"
#include "shard/parallel/nccl/nccl_api.h"

namespace penstock::shard::cuda {

struct CudaDeviceFacts {
  std::string uuid;  // the same for ranks that share the device; as long on every rank
  std::uint64_t total_bytes = 0;
  double memory_fraction = 1.0;  // of total_bytes that this process may take
};

class CudaDevice final : public RankDevice {
 public:
  // All outlive the object and what Join gives.
  CudaDevice(CudaDeviceFacts facts, Gpu& gpu, DeviceQueue& queue, NcclApi& nccl)
      : facts_(std::move(facts)), gpu_(gpu), queue_(queue), nccl_(nccl) {}

  std::string Name() const override { return "cuda"; }
  // What is free now, less what the fraction keeps for others.
  absl::StatusOr<DeviceMemory> Memory() override;
  absl::StatusOr<std::shared_ptr<Communicator>> Join(
      std::shared_ptr<Communicator> control) override;

 private:
  // Ranks with the device of rank r, for each r.
  absl::StatusOr<std::vector<int>> CountSharers(Communicator& control) const;

  const CudaDeviceFacts facts_;
  Gpu& gpu_;
  DeviceQueue& queue_;
  NcclApi& nccl_;
  std::uint32_t sharers_ = 1;
};

}  // namespace penstock::shard::cuda
