#include "shard/backend/cpu/threads/thread_spread.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "shard/backend/cpu/threads/numa.h"

namespace penstock::shard::cpu {
namespace {

// One meeting may be over with the next wake-up.
constexpr int kMeetings = 3;
// Between moves: where others fill the processors, the balancing has the last word.
constexpr std::chrono::milliseconds kRest{10};

}  // namespace

bool ThreadSpread::AfterSleep(std::uint32_t thread) {
  const int cpu = ::sched_getcpu();
  Place& place = places_[thread];
  place.cpu.store(cpu, std::memory_order_relaxed);
  if (!IsShared(thread, cpu)) {
    place.meetings = 0;
    return false;
  }
  if (++place.meetings < kMeetings) return false;
  const Time now = SteadyNow();
  if (now < place.not_before) return false;
  place.meetings = 0;
  place.not_before = now + kRest;
  return Leave(thread);
}

bool ThreadSpread::IsShared(std::uint32_t thread, int cpu) const {
  for (std::uint32_t other = 0; other < places_.size(); ++other) {
    if (other != thread && places_[other].cpu.load(std::memory_order_relaxed) == cpu) return true;
  }
  return false;
}

// The kernel moves a thread that may no longer be where it is at once; then it may be anywhere
// again. If that is all that the cpuset allows, it is asked for as everything, so that the thread
// follows a cpuset that grows. Who else has set where it may be in the meantime has the last word.
bool ThreadSpread::Leave(std::uint32_t thread) {
  const std::vector<std::uint32_t> usual = CpusOfThisThread();
  std::vector<std::uint32_t> free = usual;
  std::erase_if(free, [&](std::uint32_t cpu) { return IsShared(thread, static_cast<int>(cpu)); });
  if (free.empty() || !KeepThisThreadOn(free)) return false;
  places_[thread].cpu.store(::sched_getcpu(), std::memory_order_relaxed);
  if (CpusOfThisThread() != free) return true;
  LetThisThreadGoAnywhere();
  if (CpusOfThisThread() != usual) KeepThisThreadOn(usual);
  return true;
}

}  // namespace penstock::shard::cpu
