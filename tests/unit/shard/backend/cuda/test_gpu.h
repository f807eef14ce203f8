// The device on which these tests run: the emulator here, a real one in penstock-gpu-tests, which
// is made of the same sources.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "shard/backend/cuda/gpu.h"
#include "shard/parallel/device_queue.h"

namespace penstock::shard::cuda {

// One object with both interfaces, as in the CUDA build.
struct TestDevice {
  std::unique_ptr<Gpu> gpu;
  DeviceQueue* queue = nullptr;  // of `gpu`
};
absl::StatusOr<TestDevice> OpenTestDevice();

// Why tests cannot run here; empty if they can.
absl::Status DeviceIsThere();

// Whether threads are emulated, so that a test may do less.
bool IsEmulated();

// Whether the emulated device runs work only when the host waits. Has no effect on a real device.
void WorkLate(bool late);

// Memory that the host and the device both reach.
void* AllocateShared(std::size_t bytes);
void FreeShared(void* memory);

// Waits for kernels that were launched on the default stream.
absl::Status FinishKernels();

template <class T>
struct SharedAllocator {
  using value_type = T;
  SharedAllocator() = default;
  template <class U>
  SharedAllocator(const SharedAllocator<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(AllocateShared(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { FreeShared(memory); }
  friend bool operator==(const SharedAllocator&, const SharedAllocator&) { return true; }
};
template <class T>
using SharedVector = std::vector<T, SharedAllocator<T>>;

}  // namespace penstock::shard::cuda

// First line of a test that launches kernels.
#define PENSTOCK_DEVICE_OR_SKIP()                                                         \
  if (const absl::Status there = ::penstock::shard::cuda::DeviceIsThere(); !there.ok()) { \
    GTEST_SKIP() << there.message();                                                      \
  }
