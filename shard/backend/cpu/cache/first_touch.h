// The first touch of memory, in which the kernel finds pages and zeroes them. It must not happen in
// a step; on a guest it may cost seconds per GiB, since the host finds pages then, too.
//
// Nor beside steps, if it can be helped: they need the processors and the memory's bandwidth.
//
// Threading: FirstTouch has one thread of its own; whoever else uses the memory meanwhile may read
// and write it, and touches what it uses by that. The other calls are its owner's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "common/time.h"
#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard::cpu {

// Memory is touched in units of so many bytes, a huge page, from its begin on; the last may be
// shorter.
inline constexpr std::size_t kTouchUnit = std::size_t{2} << 20;

// Without a step for so long nobody is served: between two steps of a busy shard is less.
inline constexpr Duration kIdle = std::chrono::milliseconds(20);

constexpr std::size_t TouchUnits(std::size_t bytes) {
  return (bytes + kTouchUnit - 1) / kTouchUnit;
}

// Has all pages of a unit in memory, and changes no byte of them.
void TouchUnit(std::span<std::byte> memory, std::size_t unit);

// Touches units one after the other, behind everything else: while no step has run for kIdle, and
// beside steps as far as these may come to use them. The destructor ends it early.
class FirstTouch {
 public:
  // The memory outlives it.
  FirstTouch(std::span<std::byte> memory, std::vector<std::uint32_t> units)
      : memory_(memory), units_(std::move(units)), thread_([this] { Run(); }) {}
  ~FirstTouch() {
    stop_ = true;
    Await();
  }
  FirstTouch(const FirstTouch&) = delete;
  FirstTouch& operator=(const FirstTouch&) = delete;

  // Beside this step and later ones the first `wanted` units are touched, not fewer than before.
  void StepBegins(std::size_t wanted);
  void StepEnds() { steps_.Advance(); }

  // Until all has been touched. Not within a step.
  void Await();

 private:
  void Run();
  void AwaitTurn(std::size_t index);

  const std::span<std::byte> memory_;
  const std::vector<std::uint32_t> units_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> wanted_ = 0;
  WaitCounter steps_;             // odd within a step
  std::uint32_t idle_since_ = 1;  // the count behind which no step had begun for kIdle; odd: none
  std::thread thread_;            // last: it uses the rest
};

}  // namespace penstock::shard::cpu
