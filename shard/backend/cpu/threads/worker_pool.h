// The threads of the CPU backend. A step is one parallel region: every thread walks the same list
// of stages and meets the others at a barrier where a stage needs what another thread made.
//
// Waiting spins for at most 50 µs, then sleeps on a futex, so an idle pool costs nothing and a
// thread that lost its core does not burn the others'. A barrier between threads that all run costs
// well under a microsecond.
//
// Threading: one owner calls Run; Barrier only inside a region, by all its threads equally often.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "shard/backend/cpu/threads/numa.h"

namespace penstock::shard::cpu {

// A counter that threads wait on.
class alignas(64) WaitCounter {
 public:
  std::uint32_t Value() const { return value_.load(std::memory_order_acquire); }
  // Everything written before it is visible to the threads that it wakes.
  void Advance();
  // Waits while the value is `seen`.
  void AwaitChangeFrom(std::uint32_t seen);

 private:
  std::atomic<std::uint32_t> value_ = 0;
  std::atomic<std::uint32_t> sleepers_ = 0;
};

// Of a pool, at most; what --cpu-threads goes up to.
inline constexpr std::uint32_t kMostThreads = 1024;

class WorkerPool {
 public:
  using Function = void (*)(void* context, std::uint32_t thread);

  // 1 … kMostThreads threads, the caller of Run among them as thread 0.
  // The placement is of as many, or of none; the caller is kept on its node from its first Run
  // until the pool ends.
  explicit WorkerPool(std::uint32_t threads, Placement placement = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::uint32_t threads() const { return threads_; }
  const Placement& placement() const { return placement_; }

  // Calls body(thread) on every thread and returns when all are done.
  template <class Body>
  void Run(Body&& body) {
    RunFunction([](void* context, std::uint32_t thread) { (*static_cast<Body*>(context))(thread); },
                const_cast<void*>(static_cast<const void*>(&body)));
  }

  void Barrier();

 private:
  void RunFunction(Function function, void* context);
  void Work(std::uint32_t thread);
  // The calling thread on the CPUs of a thread of the pool.
  void KeepOnNodeOf(std::uint32_t thread) const;
  void KeepCaller();

  const std::uint32_t threads_;
  const Placement placement_;
  std::thread::id caller_;                   // that is kept on its node,
  std::vector<std::uint32_t> callers_cpus_;  // and the CPUs that it had
  Function function_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  WaitCounter regions_;   // advances when a region begins
  WaitCounter barriers_;  // advances when all have arrived
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace penstock::shard::cpu
