// The threads of the CPU backend. A step is one parallel region: every thread runs the same list of
// stages, with a barrier where a stage reads what another thread wrote.
//
// A waiting thread spins for at most 50 µs and then sleeps on a futex, so an idle pool uses no
// processor time. A barrier between running threads costs well under a microsecond.
//
// Threading: one owner calls Run. Inside a region all threads call Barrier equally often.
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

// The most threads of a pool, and the limit of --cpu-threads.
inline constexpr std::uint32_t kMostThreads = 1024;

class WorkerPool {
 public:
  using Function = void (*)(void* context, std::uint32_t thread);

  // 1 to kMostThreads threads; the caller of Run is thread 0. The placement is for as many threads,
  // or empty. The caller is bound to its node from its first Run to the end of the pool.
  explicit WorkerPool(std::uint32_t threads, ThreadPlacement placement = {});
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::uint32_t threads() const { return threads_; }
  const ThreadPlacement& placement() const { return placement_; }

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
  // Binds the calling thread to the node of a thread of the pool.
  void BindToNodeOf(std::uint32_t thread) const;
  void BindCaller();

  const std::uint32_t threads_;
  const ThreadPlacement placement_;
  std::thread::id caller_;                   // the bound caller
  std::vector<std::uint32_t> callers_cpus_;  // its CPUs before that
  Function function_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
  WaitCounter regions_;   // advances when a region begins
  WaitCounter barriers_;  // advances when all threads have arrived
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  std::vector<std::thread> workers_;
};

}  // namespace penstock::shard::cpu
