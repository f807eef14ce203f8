#include "shard/backend/cpu/threads/worker_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

namespace penstock::shard::cpu {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kPausesPerClockRead = 16;

void Futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value,
          nullptr, nullptr, 0);
}

}  // namespace

void WaitCounter::Advance() {
  value_.fetch_add(1);
  // Sequentially consistent on both sides: either this sees the sleeper, or the sleeper sees the
  // new value and does not sleep.
  if (sleepers_.load() > 0) Futex(value_, FUTEX_WAKE, INT_MAX);
}

void WaitCounter::AwaitChangeFrom(std::uint32_t seen) {
  if (Value() != seen) return;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (Value() != seen) return;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  sleepers_.fetch_add(1);
  while (value_.load() == seen) Futex(value_, FUTEX_WAIT, seen);
  sleepers_.fetch_sub(1);
}

WorkerPool::WorkerPool(std::uint32_t threads, ThreadPlacement placement)
    : threads_(std::clamp(threads, 1u, kMostThreads)), placement_(std::move(placement)) {
  for (std::uint32_t thread = 1; thread < threads_; ++thread) {
    workers_.emplace_back([this, thread] { Work(thread); });
  }
}

WorkerPool::~WorkerPool() {
  stop_ = true;
  regions_.Advance();
  for (std::thread& worker : workers_) worker.join();
  if (caller_ == std::this_thread::get_id()) BindThisThreadTo(callers_cpus_);
}

void WorkerPool::BindToNodeOf(std::uint32_t thread) const {
  if (placement_.of_thread.empty()) return;
  BindThisThreadTo(placement_.nodes[placement_.of_thread[thread]].cpus);
}

void WorkerPool::BindCaller() {
  caller_ = std::this_thread::get_id();
  callers_cpus_ = CpusOfThisThread();
  BindToNodeOf(0);
}

void WorkerPool::RunFunction(Function function, void* context) {
  if (!placement_.of_thread.empty() && caller_ != std::this_thread::get_id()) BindCaller();
  function_ = function;
  context_ = context;
  if (threads_ > 1) regions_.Advance();
  function(context, 0);
  Barrier();
}

void WorkerPool::Work(std::uint32_t thread) {
  BindToNodeOf(thread);
  for (std::uint32_t seen = 0;; ++seen) {
    regions_.AwaitChangeFrom(seen);
    if (stop_) return;
    function_(context_, thread);
    Barrier();
  }
}

void WorkerPool::Barrier() {
  if (threads_ == 1) return;
  const std::uint32_t seen = barriers_.Value();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < threads_) {
    barriers_.AwaitChangeFrom(seen);
    return;
  }
  arrived_.store(0, std::memory_order_relaxed);
  barriers_.Advance();
}

}  // namespace penstock::shard::cpu
