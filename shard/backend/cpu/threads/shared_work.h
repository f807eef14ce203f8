// Even shares whose owners help each other: who is done takes parts of what others have not begun.
// A core that lost its processor for a moment, or reads slower memory, then costs little. Who
// computes a part never changes its bits.
//
// Threading: all threads of a pool; between two Begins of a thread, all of them have met.
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
  // Of a pool whose threads are placed so.
  explicit SharedWork(std::size_t threads, Placement placement = {})
      : ranges_(threads), placement_(std::move(placement)) {}

  // The thread's own share, below 2^32. What it had before has been taken.
  void Begin(std::size_t thread, const Share& share);
  // A part to be computed now: of the thread's own share from its front, then of those of `peers`
  // from their ends, on the same NUMA node first, half of what is left each time, cut at multiples
  // of `grain`. Of no items when nothing is left.
  Share Next(std::size_t thread, const Share& peers, std::size_t grain);

 private:
  struct alignas(64) Range {
    std::atomic<std::uint64_t> bounds = 0;  // first << 32 | end
  };
  static Share Take(Range& range, std::size_t grain, bool front);

  Share TakeFromPeers(std::size_t thread, const Share& peers, std::size_t grain, bool near);

  std::vector<Range> ranges_;
  const Placement placement_;
};

}  // namespace penstock::shard::cpu
