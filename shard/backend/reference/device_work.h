// Calls of libtorch for devices other than the CPU. They use libc10 alone, so the same code links
// with and without libtorch_cuda.
#pragma once

#include "shard/backend/reference/aten.h"

namespace penstock::shard {

// Makes libtorch enqueue this thread's work on `stream` (a cudaStream_t), which the communicator
// uses too. Does nothing for a CPU or null.
inline void UseStream(at::Device device, void* stream) {
  if (device.is_cpu() || stream == nullptr) return;
  // libtorch takes the handle of a stream made elsewhere for its id (c10/cuda/CUDAStream.cpp).
  const auto id = reinterpret_cast<c10::StreamId>(stream);
  c10::impl::VirtualGuardImpl(device.type())
      .exchangeStream(c10::Stream(c10::Stream::UNSAFE, device, id));
}

// Returns memory that libtorch keeps for later use to the device, where it counts as free.
inline void GiveBackMemory(at::Device device) {
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

}  // namespace penstock::shard
