// What a communicator needs to know of the device's stream on which its collectives run. The CUDA
// build implements it with a stream and events; tests with plain memory.
//
// Threading: as each function says.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>

namespace penstock::shard {

class DeviceQueue {
 public:
  // Counts up: a mark is done only after every earlier one.
  using Mark = std::uint64_t;

  virtual ~DeviceQueue() = default;

  // Marks the end of all that is enqueued now; while a graph is being recorded nothing is, and the
  // last mark comes again. The model thread.
  virtual absl::StatusOr<Mark> Record() = 0;

  // Whether the device has come to the mark. Any thread; never waits.
  virtual absl::StatusOr<bool> Done(Mark mark) = 0;

  // The stream as the library's own handle (cudaStream_t), for calls that enqueue.
  virtual void* NativeStream() = 0;
};

}  // namespace penstock::shard
