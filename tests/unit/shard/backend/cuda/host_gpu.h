// A Gpu without a GPU: device memory is host memory, kernels run on the emulator, matrix products
// are plain loops. It fails what a real capture forbids.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "shard/backend/cuda/gpu.h"
#include "shard/parallel/device_queue.h"

namespace penstock::shard::cuda {

class HostGpu final : public Gpu, public DeviceQueue {
 public:
  absl::StatusOr<void*> Allocate(std::size_t bytes) override;
  void Free(void* memory) override;
  absl::StatusOr<void*> AllocatePinned(std::size_t bytes) override;
  void FreePinned(void* memory) override;
  absl::StatusOr<std::uint64_t> FreeBytes() override { return std::uint64_t{1} << 30; }
  absl::Status Upload(void* device, const void* host, std::size_t bytes) override;
  absl::Status Download(void* host, const void* device, std::size_t bytes) override;
  absl::Status Copy(void* target, const void* source, std::size_t bytes) override;
  absl::Status Zero(void* memory, std::size_t bytes) override;
  absl::Status Synchronize() override;
  Stream stream() override { return nullptr; }
  absl::StatusOr<Gpu::Mark> MarkHere(std::function<void()> done) override;
  absl::Status WaitFor(Gpu::Mark mark) override;
  absl::Status Linear(const LinearArgs& args, DType dtype) override;
  absl::Status TuneLinear(const LinearArgs& args, DType dtype) override;
  absl::Status BeginCapture() override;
  absl::StatusOr<Graph> EndCapture() override;
  absl::Status Launch(Graph graph) override;
  void FreeGraph(Graph graph) override;

  // As the queue of a fake NCCL: all work is done at once.
  absl::StatusOr<DeviceQueue::Mark> Record() override { return DeviceQueue::Mark{0}; }
  absl::StatusOr<bool> Done(DeviceQueue::Mark) override { return true; }
  void* NativeStream() override { return nullptr; }

 private:
  bool IsPinned(const void* memory) const;

  using Work = std::vector<std::function<void()>>;
  std::map<void*, std::unique_ptr<std::byte[]>> memory_;
  std::map<void*, std::unique_ptr<Work>> graphs_;
  std::map<const std::byte*, std::size_t> pinned_;  // bytes by begin
};

}  // namespace penstock::shard::cuda
