// One device and a stream of it: memory, copies, GEMMs and graphs. cuda_gpu.h implements it. Tests
// implement it with host memory and an emulator of the kernels, so that they run without a device.
//
// Work is enqueued in order; only Synchronize and WaitFor wait. Between BeginCapture and EndCapture
// work is recorded instead of run. In that time no call may allocate, wait, or upload from pageable
// memory.
//
// Threading: one thread, the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "common/dtype.h"
#include "shard/backend/cuda/kernels.h"

namespace penstock::shard::cuda {

class Gpu {
 public:
  using Graph = void*;

  virtual ~Gpu() = default;

  virtual absl::StatusOr<void*> Allocate(std::size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  virtual absl::StatusOr<void*> AllocatePinned(std::size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;
  virtual absl::StatusOr<std::uint64_t> FreeBytes() = 0;

  // Copies from pinned memory are asynchronous. For other memory the call returns after the copy.
  virtual absl::Status Upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual absl::Status Download(void* host, const void* device, std::size_t bytes) = 0;
  virtual absl::Status Copy(void* target, const void* source, std::size_t bytes) = 0;
  virtual absl::Status Zero(void* memory, std::size_t bytes) = 0;
  virtual absl::Status Synchronize() = 0;
  virtual Stream stream() = 0;

  // Marks the end of all work enqueued so far. `done` is called once, on any thread, when the
  // device has reached the mark or has failed. At most kMostMarks marks are not reached.
  using Mark = std::uint64_t;
  static constexpr std::size_t kMostMarks = 8;
  virtual absl::StatusOr<Mark> MarkHere(std::function<void()> done) = 0;
  // Waits until the device has reached the mark, which is one of the last kMostMarks. Returns
  // DeadlineExceeded after half a minute, or the error of the device.
  virtual absl::Status WaitFor(Mark mark) = 0;

  virtual absl::Status Linear(const LinearArgs& args, DType dtype) = 0;
  // Measures the algorithms for a GEMM of these sizes and keeps the fastest for Linear. May
  // overwrite `out`. Waits.
  virtual absl::Status TuneLinear(const LinearArgs& args, DType dtype) = 0;

  virtual absl::Status BeginCapture() = 0;
  virtual absl::StatusOr<Graph> EndCapture() = 0;
  virtual absl::Status Launch(Graph graph) = 0;
  virtual void FreeGraph(Graph graph) = 0;
};

// Memory of a Gpu, on the device or pinned on the host; freed with the object.
class GpuMemory {
 public:
  GpuMemory() = default;
  ~GpuMemory() { Release(); }
  GpuMemory(GpuMemory&& other) noexcept { *this = std::move(other); }
  GpuMemory& operator=(GpuMemory&& other) noexcept {
    Release();
    gpu_ = std::exchange(other.gpu_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    pinned_ = other.pinned_;
    return *this;
  }

  static absl::StatusOr<GpuMemory> OnDevice(Gpu& gpu, std::size_t bytes) {
    return Of(gpu, gpu.Allocate(bytes), bytes, false);
  }
  static absl::StatusOr<GpuMemory> Pinned(Gpu& gpu, std::size_t bytes) {
    return Of(gpu, gpu.AllocatePinned(bytes), bytes, true);
  }

  void* data() const { return data_; }
  std::byte* At(std::size_t offset) const { return static_cast<std::byte*>(data_) + offset; }
  std::size_t bytes() const { return bytes_; }

 private:
  static absl::StatusOr<GpuMemory> Of(Gpu& gpu, absl::StatusOr<void*> data, std::size_t bytes,
                                      bool pinned) {
    if (!data.ok()) return data.status();
    GpuMemory memory;
    memory.gpu_ = &gpu;
    memory.data_ = *data;
    memory.bytes_ = bytes;
    memory.pinned_ = pinned;
    return memory;
  }
  void Release() {
    if (data_ == nullptr) return;
    pinned_ ? gpu_->FreePinned(data_) : gpu_->Free(data_);
    data_ = nullptr;
  }

  Gpu* gpu_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool pinned_ = false;
};

}  // namespace penstock::shard::cuda
