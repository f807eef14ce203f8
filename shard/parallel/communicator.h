// Collective operations of the ranks of one group. Buffers lie on the device of the communicator
// (host memory for `local` and `shm`). The caller owns them and must not change them during a call.
//
// Every rank makes the same calls in the same order with the same sizes. A difference gives an
// Internal error that names both ranks. Every wait has a deadline. After an error the communicator
// is aborted: all later calls on every rank fail at once.
//
// Threading: one thread per rank calls; Abort may be called from any thread.
#pragma once

#include <absl/status/status.h>

#include <cstddef>

namespace penstock::shard {

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world() const = 0;

  // data[i] = ((rank0[i] + rank1[i]) + rank2[i]) + … in float32: the same bits on every rank.
  virtual absl::Status AllReduceSum(float* data, std::size_t count) = 0;

  // Writes the bytes of rank 0, of rank 1, … to `all`, which has room for world() * bytes.
  virtual absl::Status AllGather(const void* mine, std::size_t bytes, void* all) = 0;

  // Copies the data of `root` to every rank.
  virtual absl::Status Broadcast(void* data, std::size_t bytes, int root) = 0;

  // Whether the calls can be recorded in a graph, because they never wait on the host.
  virtual bool CanBeRecorded() const { return false; }

  // Applies the deadline to all that is enqueued now. Called after the launch of a recorded graph
  // with collectives.
  virtual absl::Status WatchQueued() { return absl::OkStatus(); }

  // The error of an earlier call, if any. Calls that only enqueue work on a device (nccl) cannot
  // return its errors. After the device has finished, Health tells whether the results are valid.
  virtual absl::Status Health() { return absl::OkStatus(); }

  // Ends waiting calls of every rank with an error.
  virtual void Abort() = 0;
};

}  // namespace penstock::shard
