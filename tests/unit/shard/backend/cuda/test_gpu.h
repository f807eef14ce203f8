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

// One object that is both, as the CUDA build's is.
struct TestDevice {
  std::unique_ptr<Gpu> gpu;
  DeviceQueue* queue = nullptr;  // of `gpu`
};
absl::StatusOr<TestDevice> OpenTestDevice();

// Why no test can run here; nothing if they can.
absl::Status DeviceIsThere();

// A test may do less where every thread is emulated.
bool IsEmulated();

// Whether the emulated device does nothing until somebody waits for it. A real one is as late as it
// is.
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
