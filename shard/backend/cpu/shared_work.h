// Even shares whose owners help each other: who is done takes parts of what others have not begun.
// A core that lost its processor for a moment, or reads slower memory, then costs little. Who
// computes a part never changes its bits.
//
// Threading: all threads of a pool; between two Begins of a thread, all of them have met.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/cpu/work_split.h"

namespace penstock::shard::cpu {

class SharedWork {
 public:
  explicit SharedWork(std::size_t threads) : ranges_(threads) {}

  // The thread's own share, below 2^32. What it had before has been taken.
  void Begin(std::size_t thread, const Share& share);
  // A part to be computed now: of the thread's own share from its front, then of those of `peers`
  // from their ends, half of what is left each time, cut at multiples of `grain`. Of no items when
  // nothing is left.
  Share Next(std::size_t thread, const Share& peers, std::size_t grain);

 private:
  struct alignas(64) Range {
    std::atomic<std::uint64_t> bounds = 0;  // first << 32 | end
  };
  static Share Take(Range& range, std::size_t grain, bool front);

  std::vector<Range> ranges_;
};

}  // namespace penstock::shard::cpu
