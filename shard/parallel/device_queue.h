// The stream of a device on which collectives run, as a communicator sees it. The CUDA build
// implements it with a stream and events, tests with plain memory.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>

namespace penstock::shard {

class DeviceQueue {
 public:
  // Marks increase. A mark is done only after all earlier ones.
  using Mark = std::uint64_t;

  virtual ~DeviceQueue() = default;

  // Marks the end of all that is enqueued now. While a graph is recorded nothing is enqueued, and
  // the last mark is returned again. Model thread only.
  virtual absl::StatusOr<Mark> Record() = 0;

  // Whether the device has reached the mark. Never waits. Any thread.
  virtual absl::StatusOr<bool> Done(Mark mark) = 0;

  // The stream as the library's own handle (cudaStream_t), for calls that enqueue.
  virtual void* NativeStream() = 0;
};

}  // namespace penstock::shard
