// Keeps the threads of a pool on different processors, without tying them to one.
//
// Linux looks for no idle processor for a thread that it wakes while those that share a cache are
// busy on the whole, as a pool keeps them. Once two threads of a pool have met on one processor
// (something else ran on the other for a moment), each sleeps while the other runs, and so they
// stay until the next balancing: some ten milliseconds, a whole step and more. So a thread that
// keeps waking beside another of its pool leaves.
//
// Threading: each thread calls for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "common/time.h"

namespace penstock::shard::cpu {

class ThreadSpread {
 public:
  explicit ThreadSpread(std::uint32_t threads) : places_(threads) {}

  // By a thread that has slept to wait for others of the pool. True if it has moved.
  bool AfterSleep(std::uint32_t thread);

 private:
  static constexpr int kNowhere = -1;

  struct alignas(64) Place {
    std::atomic<int> cpu = kNowhere;  // where it last came out of sleep
    int meetings = 0;                 // in a row
    Time not_before{};                // it moves again
  };

  bool IsShared(std::uint32_t thread, int cpu) const;
  bool Leave(std::uint32_t thread);

  std::vector<Place> places_;
};

}  // namespace penstock::shard::cpu
