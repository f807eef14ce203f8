// Even shares with work stealing: a thread that has finished its share takes parts of the shares of
// others. So a thread that lost its processor for a moment, or reads slower memory, delays the step
// only a little. Bits do not depend on which thread computes a part.
//
// Threading: all threads of a pool, with a barrier between two Begins of a thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "shard/backend/cpu/threads/numa.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {

class SharedWork {
 public:
  // For a pool with this placement.
  explicit SharedWork(std::size_t threads, ThreadPlacement placement = {})
      : ranges_(threads), placement_(std::move(placement)) {}

  // Sets the thread's share, below 2^32. Its share before must be used up.
  void Begin(std::size_t thread, const Share& share);
  // The next part to compute; empty when nothing is left. It comes from the front of the thread's
  // own share, then from the ends of the shares of `peers`, those on the same NUMA node first. Each
  // part is half of what is left of a share, rounded to multiples of `grain`.
  Share Next(std::size_t thread, const Share& peers, std::size_t grain);

 private:
  struct alignas(64) Range {
    std::atomic<std::uint64_t> bounds = 0;  // first << 32 | end
  };
  static Share Take(Range& range, std::size_t grain, bool front);

  Share TakeFromPeers(std::size_t thread, const Share& peers, std::size_t grain, bool near);

  std::vector<Range> ranges_;
  const ThreadPlacement placement_;
};

}  // namespace penstock::shard::cpu
