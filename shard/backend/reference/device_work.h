// What libtorch is told about a device other than the CPU, through libc10 alone: the same code is
// linked with and without libtorch_cuda.
#pragma once

#include "shard/backend/reference/aten.h"

namespace penstock::shard {

// From now on libtorch enqueues this thread's work on `stream` (cudaStream_t), where the
// communicator's stands too. Nothing for a CPU or null.
inline void UseStream(at::Device device, void* stream) {
  if (device.is_cpu() || stream == nullptr) return;
  // libtorch takes the handle of a stream made elsewhere for its id (c10/cuda/CUDAStream.cpp).
  const auto id = reinterpret_cast<c10::StreamId>(stream);
  c10::impl::VirtualGuardImpl(device.type())
      .exchangeStream(c10::Stream(c10::Stream::UNSAFE, device, id));
}

// Memory that libtorch keeps for later goes back to the device, where it counts as free.
inline void GiveBackMemory(at::Device device) {
  if (!device.is_cpu()) c10::getDeviceAllocator(device.type())->emptyCache();
}

}  // namespace penstock::shard
