// Communicator of CPU ranks on one host: one POSIX shared-memory object, a barrier counter per
// rank.
//
// An operation moves through the object in chunks of `chunk_bytes`. For each chunk a rank writes
// its part into its own buffer, counts up its counter, waits until every other counter has arrived
// and reads all parts in rank order. Buffers alternate between two halves: a rank can reach the
// same half again only after all others have arrived at the chunk between, so they have finished
// reading.
//
// Waiting spins for at most 50 µs, then sleeps on a futex until the deadline. The name is removed
// as soon as every rank has joined, so nothing stays behind when processes die.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "shard/parallel/communicator.h"

namespace penstock::shard {

struct ShmOptions {
  std::string
      name;  // rendezvous: the same on all ranks, fresh for each group epoch, e.g. "penstock-8f3a"
  int rank = 0;
  int world = 2;                                   // 2 … 64
  std::chrono::milliseconds timeout{30'000};       // of each wait
  std::size_t chunk_bytes = std::size_t{1} << 20;  // per rank and half; equal on all ranks
};

// Blocks until all ranks have joined or the timeout has passed.
absl::StatusOr<std::unique_ptr<Communicator>> JoinShmGroup(const ShmOptions& options);

}  // namespace penstock::shard
