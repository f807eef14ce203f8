// How the ranks of one group agree. Buffers lie on the device that the communicator serves (host
// memory for `local` and `shm`), are the caller's, and must not change during a call.
//
// Every rank makes the same calls in the same order with the same sizes; a difference is reported
// as an Internal error that names both ranks. Every wait has a deadline. After an error the
// communicator is aborted: all later calls on every rank fail at once.
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

  // all = rank 0's bytes, rank 1's bytes, …; `all` holds world() * bytes.
  virtual absl::Status AllGather(const void* mine, std::size_t bytes, void* all) = 0;

  // data of `root` on every rank.
  virtual absl::Status Broadcast(void* data, std::size_t bytes, int root) = 0;

  // Whether the calls can be recorded in a graph: they wait for nothing on the host.
  virtual bool CanBeRecorded() const { return false; }

  // Holds all that is enqueued now to the deadline: after a recorded graph with collectives in it
  // has been launched, which no call of the above announces.
  virtual absl::Status WatchQueued() { return absl::OkStatus(); }

  // How the calls so far have gone. Where calls only enqueue work on a device (nccl), this says,
  // once the device has come to its end, whether what they gave can be used.
  virtual absl::Status Health() { return absl::OkStatus(); }

  // Ends waiting calls of every rank with an error.
  virtual void Abort() = 0;
};

}  // namespace penstock::shard
