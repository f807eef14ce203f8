#include "tests/unit/shard/backend/cuda/emulator.h"

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::emulator {
namespace {

using boost::context::fiber;

constexpr unsigned kWarp = 32;
constexpr std::size_t kStackBytes = 64 << 10;

enum class State { kReady, kAtBlock, kAtWarp, kDone };

// Stacks are used again: a launch makes thousands of threads.
class StackPool {
 public:
  boost::context::stack_context allocate() {
    if (Free().empty()) return boost::context::fixedsize_stack(kStackBytes).allocate();
    const boost::context::stack_context stack = Free().back();
    Free().pop_back();
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) { Free().push_back(stack); }

 private:
  struct Kept : std::vector<boost::context::stack_context> {
    ~Kept() {
      for (auto& stack : *this) boost::context::fixedsize_stack(kStackBytes).deallocate(stack);
    }
  };
  static Kept& Free() {
    thread_local Kept stacks;
    return stacks;
  }
};

struct PendingCopy {
  void* to;
  const void* from;
};

struct FiberThread {
  fiber resume;
  fiber back;  // to the scheduler
  ThreadView view;
  State state = State::kReady;
  // Two buffers alternate: a thread may write the next value while others still read the last one.
  std::array<std::array<std::byte, 32>, 2> offers;
  std::size_t turn = 0;
  std::deque<std::vector<PendingCopy>> copies;  // ended groups
  std::vector<PendingCopy> open_copies;
};

struct BlockRun {
  std::vector<FiberThread> threads;
  std::vector<float> shared;
  std::size_t running = 0;
};

// Per host thread: ranks of a test run beside each other.
thread_local BlockRun* block_run = nullptr;
thread_local std::optional<std::vector<std::function<void()>>> capture;
thread_local bool lazy_mode = false;
thread_local std::deque<std::function<void()>> queued;
thread_local std::size_t done_so_far = 0;

FiberThread& Self() { return block_run->threads[block_run->running]; }

void Wait(State state) {
  FiberThread& self = Self();
  self.state = state;
  self.back = std::move(self.back).resume();
}

// Threads [begin, end) go on if all that have not ended wait at `state`.
bool Release(std::size_t begin, std::size_t end, State state) {
  std::size_t waiting = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (block_run->threads[i].state == state) ++waiting;
  }
  if (waiting == 0) return false;
  for (std::size_t i = begin; i < end; ++i) {
    const State present = block_run->threads[i].state;
    if (present != state && present != State::kDone) return false;
  }
  for (std::size_t i = begin; i < end; ++i) {
    FiberThread& thread = block_run->threads[i];
    if (thread.state == state) thread.state = State::kReady;
  }
  return true;
}

bool ReleaseAny() {
  const std::size_t count = block_run->threads.size();
  bool released = false;
  for (std::size_t warp = 0; warp < count; warp += kWarp) {
    released |= Release(warp, std::min(count, warp + kWarp), State::kAtWarp);
  }
  return Release(0, count, State::kAtBlock) || released;
}

// True while some thread could run.
bool RunReady() {
  bool ran = false;
  for (std::size_t i = 0; i < block_run->threads.size(); ++i) {
    FiberThread& thread = block_run->threads[i];
    if (thread.state != State::kReady) continue;
    block_run->running = i;
    thread.resume = std::move(thread.resume).resume();
    ran = true;
  }
  return ran;
}

bool AllDone() {
  for (const FiberThread& thread : block_run->threads) {
    if (thread.state != State::kDone) return false;
  }
  return true;
}

void RunBlock(const ThreadView& view, unsigned count, std::size_t shared_bytes,
              const std::function<void()>& kernel) {
  thread_local BlockRun run;  // its memory is used again
  run.threads.clear();
  run.threads.resize(count);
  run.shared.assign(shared_bytes / sizeof(float) + 1, std::nanf(""));
  block_run = &run;
  for (unsigned i = 0; i < count; ++i) {
    run.threads[i].view = view;
    run.threads[i].view.thread = dim3(i, 0, 0);
    run.threads[i].resume = fiber(std::allocator_arg, StackPool(), [&kernel](fiber&& back) {
      const std::size_t self = block_run->running;
      block_run->threads[self].back = std::move(back);
      kernel();
      block_run->threads[self].state = State::kDone;
      return std::move(block_run->threads[self].back);
    });
  }
  while (RunReady() || ReleaseAny()) {
  }
  if (!AllDone()) {
    std::fprintf(stderr, "emulator: threads of a block wait at different sync points\n");
    std::abort();
  }
  block_run = nullptr;
}

}  // namespace

const ThreadView& Now() { return Self().view; }

float* DynamicShared() { return block_run->shared.data(); }

void SyncBlock() { Wait(State::kAtBlock); }

void MeetInWarp(const void* offer, std::size_t bytes) {
  FiberThread& self = Self();
  self.turn = 1 - self.turn;
  std::memcpy(self.offers[self.turn].data(), offer, bytes);
  Wait(State::kAtWarp);
}

const void* OfferOf(unsigned lane) {
  const std::size_t warp = block_run->running / kWarp * kWarp;
  return block_run->threads[warp + lane].offers[Self().turn].data();
}

void BeginCopy(void* to, const void* from) { Self().open_copies.push_back({to, from}); }

void EndCopies() { Self().copies.push_back(std::exchange(Self().open_copies, {})); }

void FinishCopies(std::size_t open) {
  constexpr std::size_t kBytes = 16;
  auto& groups = Self().copies;
  for (; groups.size() > open; groups.pop_front()) {
    for (const PendingCopy& copy : groups.front()) {
      copy.from == nullptr ? std::memset(copy.to, 0, kBytes)
                           : std::memcpy(copy.to, copy.from, kBytes);
    }
  }
}

void Launch(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& kernel) {
  Enqueue([=] {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        ThreadView view;
        view.block = dim3(x, y, 0);
        view.block_size = block;
        RunBlock(view, block.x, shared_bytes, kernel);
      }
    }
  });
}

void Enqueue(std::function<void()> work) {
  if (capture.has_value()) {
    capture->push_back(std::move(work));
  } else if (lazy_mode) {
    queued.push_back(std::move(work));
  } else {
    work();
  }
}

void SetLazy(bool lazy) {
  RunQueued(EnqueuedSoFar());
  lazy_mode = lazy;
}

std::size_t EnqueuedSoFar() { return done_so_far + queued.size(); }

void RunQueued(std::size_t until) {
  while (done_so_far < until && !queued.empty()) {
    const std::function<void()> work = std::move(queued.front());
    queued.pop_front();
    ++done_so_far;
    work();
  }
}

void BeginCapture() { capture.emplace(); }
bool Capturing() { return capture.has_value(); }
std::vector<std::function<void()>> EndCapture() { return *std::exchange(capture, std::nullopt); }

}  // namespace penstock::emulator
