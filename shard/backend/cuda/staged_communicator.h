// Collectives on device buffers through pinned host memory: each copies to the host, runs there on
// another communicator, and copies back. It is slow. Several ranks can share one GPU with it, which
// NCCL refuses, so that sharded models can be tested with a single device.
//
// The host waits for the copy that it reads, up to the deadline of Gpu::WaitFor, and enqueues the
// copy back. If a copy fails or is late, the host communicator is aborted, so that no rank waits
// for one whose device hangs. Steps with these calls cannot be recorded as graphs.
//
// Threading: as Communicator.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "shard/backend/cuda/gpu.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard::cuda {

class StagedCommunicator final : public Communicator {
 public:
  // `host` joins the same ranks over host memory. `gpu` outlives the communicator.
  StagedCommunicator(std::shared_ptr<Communicator> host, Gpu& gpu)
      : host_(std::move(host)), gpu_(gpu) {}
  ~StagedCommunicator() override;

  int rank() const override { return host_->rank(); }
  int world() const override { return host_->world(); }
  absl::Status AllReduceSum(float* data, std::size_t count) override;
  absl::Status AllGather(const void* mine, std::size_t bytes, void* all) override;
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override;
  absl::Status Health() override { return failure_; }
  void Abort() override { host_->Abort(); }

 private:
  absl::Status Reduce(float* data, std::size_t count);
  absl::Status Gather(const void* mine, std::size_t bytes, void* all);
  absl::Status Send(void* data, std::size_t bytes, int root);
  // Keeps the first error, and aborts on it.
  absl::Status Report(absl::Status status);
  // Waits until the device has done all copies so far.
  absl::Status Settle();
  // At least `bytes` of the buffer, which grows to the largest call.
  absl::StatusOr<std::byte*> Room(GpuMemory& buffer, std::size_t bytes);

  const std::shared_ptr<Communicator> host_;
  Gpu& gpu_;
  GpuMemory staging_;   // pinned: this rank's bytes
  GpuMemory gathered_;  // pinned: those of all ranks
  absl::Status failure_;
};

}  // namespace penstock::shard::cuda
