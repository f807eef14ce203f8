// Device buffers through host memory: each collective copies to the host, runs there on another
// communicator, and copies back. Slow; it lets several ranks share one GPU, which NCCL refuses, so
// that sharded models can be checked where there is a single device.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "shard/parallel/communicator.h"
#include "shard/parallel/device_queue.h"

namespace penstock::shard {

class StagedCommunicator final : public Communicator {
 public:
  // `host` joins the same ranks over host memory. `queue` outlives the communicator.
  StagedCommunicator(std::shared_ptr<Communicator> host, DeviceQueue& queue)
      : host_(std::move(host)), queue_(queue) {}

  int rank() const override { return host_->rank(); }
  int world() const override { return host_->world(); }
  absl::Status AllReduceSum(float* data, std::size_t count) override;
  absl::Status AllGather(const void* mine, std::size_t bytes, void* all) override;
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override;
  void Abort() override { host_->Abort(); }

 private:
  const std::shared_ptr<Communicator> host_;
  DeviceQueue& queue_;
  std::vector<std::byte> staging_;  // grows to the largest call
  std::vector<std::byte> gathered_;
};

}  // namespace penstock::shard
