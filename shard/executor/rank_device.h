// The device of a rank, apart from the backend that computes on it: its memory, and how the ranks
// join. HostDevice is the CPU; the CUDA device is in shard/app/cuda.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/free_memory.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard {

// Memory that the rank may still use.
struct DeviceMemory {
  std::uint64_t free_bytes = 0;
  std::string limit = {};  // what allows no more; empty: the device's size
  // Ranks that share it, and the most of it that becomes KV cache without --kv-cache-memory.
  std::uint32_t ranks = 1;
  double auto_share = 0.5;
};

class RankDevice {
 public:
  virtual ~RankDevice() = default;

  // "cpu" or "cuda".
  virtual std::string Name() const = 0;

  virtual absl::StatusOr<DeviceMemory> Memory() = 0;

  // Joins the same ranks as `control`, for buffers on this device. Every rank calls it at the same
  // time. Blocks until all have joined or a deadline has passed.
  virtual absl::StatusOr<std::shared_ptr<Communicator>> Join(
      std::shared_ptr<Communicator> control) = 0;
};

// The memory and cores of the machine. The communicator of the hosts serves it too.
class HostDevice final : public RankDevice {
 public:
  explicit HostDevice(std::uint32_t local_ranks = 1) : local_ranks_(local_ranks) {}

  std::string Name() const override { return "cpu"; }
  absl::StatusOr<DeviceMemory> Memory() override {
    const absl::StatusOr<FreeBytes> free = FreeMemory();
    if (!free.ok()) return free.status();
    return DeviceMemory{.free_bytes = free->bytes, .limit = free->limit, .ranks = local_ranks_};
  }
  absl::StatusOr<std::shared_ptr<Communicator>> Join(
      std::shared_ptr<Communicator> control) override {
    return control;
  }

 private:
  const std::uint32_t local_ranks_;
};

}  // namespace penstock::shard
