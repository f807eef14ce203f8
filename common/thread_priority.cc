#include "common/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace penstock {
namespace {

constexpr std::uint64_t kLongTurn = 100'000'000;  // the longest
constexpr int kNice = 5;
constexpr int kLowestNice = 19;

// sched_setattr(2), which glibc 2.36 does not declare.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;  // of a turn, in nanoseconds
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

thread_local bool stepped_back = false;

// Where it fails the thread is as it was.
bool SetForThread(const Attributes& attributes) {
  return ::syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

bool TouchingMemoryHoldsNobodyUp() {
  utsname kernel = {};
  int major = 0;
  int minor = 0;
  if (::uname(&kernel) != 0) return false;
  if (std::sscanf(kernel.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 6 || (major == 6 && minor >= 4);
}

}  // namespace

// Linux counts nice values for each thread. Raising the value needs no privilege.
void UseBackgroundPriority() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

void StepBack() {
  if (stepped_back) return;
  Attributes attributes;
  attributes.policy = SCHED_IDLE;
  attributes.runtime = kLongTurn;
  if (!TouchingMemoryHoldsNobodyUp() || !SetForThread(attributes)) {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowestNice);
  }
  stepped_back = true;
}

}  // namespace penstock
