// The communicator of CPU ranks on one host. It uses one POSIX shared-memory object with a barrier
// counter for each rank.
//
// An operation is split into chunks of `chunk_bytes`. For each chunk a rank writes its part into
// its own buffer and increments its counter. It waits for the counters of the other ranks and reads
// all parts in rank order. Each buffer has two halves, which are used in turn. A rank writes to a
// half again only after all ranks have published the next chunk, so they have finished reading.
//
// A wait spins for at most 50 us, then sleeps on a futex until the deadline. The name of the object
// is removed as soon as every rank has joined, so nothing remains when processes die.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "shard/parallel/communicator.h"

namespace penstock::shard {

struct ShmOptions {
  // The rendezvous: the same on all ranks, new for each epoch of the group.
  std::string name;
  int rank = 0;
  int world = 2;                                   // 2 … 64
  std::chrono::milliseconds timeout{30'000};       // of one wait
  std::size_t chunk_bytes = std::size_t{1} << 20;  // of a half; equal on all ranks
};

// Blocks until all ranks have joined or the timeout has passed.
absl::StatusOr<std::unique_ptr<Communicator>> JoinShmGroup(const ShmOptions& options);

}  // namespace penstock::shard
