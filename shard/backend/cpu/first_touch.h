// The first touch of memory, in which the kernel finds pages and zeroes them. It must not happen in
// a step; on a guest it may cost seconds per GiB, since the host finds pages then, too.
//
// Nor beside steps, which it would slow down for as long as there are some: they share the memory's
// bandwidth, and any thread that runs wakes somewhere where a step's does.
//
// Threading: FirstTouch has one thread of its own; whoever else uses the memory meanwhile may read
// and write it, and touches what it uses by that. The other calls are its owner's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace penstock::shard::cpu {

// Memory is touched in units of so many bytes, a huge page, from its begin on; the last may be
// shorter.
inline constexpr std::size_t kTouchUnit = std::size_t{2} << 20;

constexpr std::size_t TouchUnits(std::size_t bytes) {
  return (bytes + kTouchUnit - 1) / kTouchUnit;
}

// Has all pages of a unit in memory, and changes no byte of them.
void TouchUnit(std::span<std::byte> memory, std::size_t unit);

// Touches units one after the other, behind everything else; the destructor ends it early. Between
// Pause and Resume the unit that it has in hand is the last: steps that follow each other without a
// break get one touched in each gap, more than they use of a cache that is touched in the order in
// which blocks are given out.
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

  void Pause() { paused_.store(1, std::memory_order_relaxed); }
  void Resume() {
    paused_.store(0, std::memory_order_relaxed);
    paused_.notify_one();
  }

  // Until all has been touched; resumes it.
  void Await() {
    Resume();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run();

  const std::span<std::byte> memory_;
  const std::vector<std::uint32_t> units_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::uint32_t> paused_ = 0;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace penstock::shard::cpu
