// The barrier that the ranks of a group pass before they run a call. RootBarrier on rank 0 decides;
// a remote barrier on every other rank asks rank 0 over a gRPC stream.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <string>

#include "common/time.h"

namespace penstock::shard {

struct RankArrival {
  std::uint32_t rank = 0;
  std::string call;         // equal on all ranks for the same call
  std::uint64_t value = 0;  // every rank gets the least value of all ranks
  std::string detail;       // must be equal on all ranks, or the call fails
  std::string lost;         // the last group that this rank was told and does not have
  Time deadline{};
};

struct RankVerdict {
  absl::Status status;
  std::uint64_t least = 0;  // of RankArrival::value
  std::string group;        // in which the call runs
};

// Called once, under the lock of the barrier. It must not block or call the barrier.
using VerdictCallback = std::function<void(const RankVerdict&)>;

// Thread-safe.
class RankBarrier {
 public:
  virtual ~RankBarrier() = default;

  // This rank has received a call. `done` gets the verdict, or an error, once all ranks have
  // received the call.
  virtual void Arrive(RankArrival arrival, VerdictCallback done) = 0;

  // Answers all waiting and all later arrivals with CANCELLED.
  virtual void Stop() = 0;
};

}  // namespace penstock::shard
