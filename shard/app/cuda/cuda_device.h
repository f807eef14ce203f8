// A CUDA device. Ranks that have different devices join through NCCL, and so does a single rank. If
// two ranks have the same device, which NCCL refuses, all join through host memory.
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
  double memory_fraction = 1.0;  // share of total_bytes that this process may use
};

class CudaDevice final : public RankDevice {
 public:
  // All outlive this object and the result of Join.
  CudaDevice(CudaDeviceFacts facts, Gpu& gpu, DeviceQueue& queue, NcclApi& nccl)
      : facts_(std::move(facts)), gpu_(gpu), queue_(queue), nccl_(nccl) {}

  std::string Name() const override { return "cuda"; }
  // The free memory, less what memory_fraction reserves for others.
  absl::StatusOr<DeviceMemory> Memory() override;
  absl::StatusOr<std::shared_ptr<Communicator>> Join(
      std::shared_ptr<Communicator> control) override;

 private:
  // For each rank: how many ranks have the same device.
  absl::StatusOr<std::vector<int>> CountSharers(Communicator& control) const;

  const CudaDeviceFacts facts_;
  Gpu& gpu_;
  DeviceQueue& queue_;
  NcclApi& nccl_;
  std::uint32_t sharers_ = 1;
};

}  // namespace penstock::shard::cuda
