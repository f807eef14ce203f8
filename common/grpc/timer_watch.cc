#include "common/grpc/timer_watch.h"

#include <dlfcn.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <unordered_map>

namespace penstock {
namespace {

// src/core/lib/iomgr/timer.h of gRPC 1.51. A Timestamp is a class of one int64, milliseconds since
// the process began, and is passed as such.
using Millis = std::int64_t;
constexpr Millis kNever = std::numeric_limits<Millis>::max();
constexpr Millis kLongAgo = std::numeric_limits<Millis>::min();

enum CheckResult : int { kNotChecked, kCheckedAndEmpty, kFired };

struct TimerFunctions {
  void (*init)(void* timer, Millis deadline, void* closure);
  void (*cancel)(void* timer);
  CheckResult (*check)(Millis* next);
  void (*list_init)();
  void (*list_shutdown)();
  void (*consume_kick)();
};

// One lock round all that gRPC does with its timers, so that what is written down is what is set.
// gRPC runs no callback in there: they come later, when it has left. Lock order: ours, then those
// of gRPC; consume_kick is called with one of gRPC's held, and takes none.
struct Watch {
  std::mutex mutex;
  const TimerFunctions* grpc = nullptr;
  void (*kick)() = nullptr;
  std::unordered_map<const void*, Millis> due;  // timers that are set; some may have fired
  Millis looks_at = kNever;                     // somebody checks then, or before
};

Watch& TheWatch() {
  static Watch& only = *new Watch;
  return only;
}

void Init(void* timer, Millis deadline, void* closure) {
  Watch& watch = TheWatch();
  if (deadline == kLongAgo) return watch.grpc->init(timer, deadline, closure);  // runs, is not set
  const std::lock_guard lock(watch.mutex);
  watch.grpc->init(timer, deadline, closure);
  watch.due[timer] = deadline;
  if (deadline >= watch.looks_at) return;
  watch.looks_at = deadline;
  watch.kick();
}

void Cancel(void* timer) {
  Watch& watch = TheWatch();
  const std::lock_guard lock(watch.mutex);
  watch.due.erase(timer);
  watch.grpc->cancel(timer);
}

// gRPC's `next` is when one of its lists is to be looked at: nothing is set for before, but for the
// millisecond by which it rounds up. What should have been before has fired.
Millis NextDue(Watch& watch, Millis next) {
  std::erase_if(watch.due, [next](const auto& entry) { return entry.second < next - 1; });
  Millis first = kNever;
  for (const auto& [timer, deadline] : watch.due) first = std::min(first, deadline);
  return std::max(first, next);
}

CheckResult Check(Millis* next) {
  Watch& watch = TheWatch();
  const std::lock_guard lock(watch.mutex);
  if (next == nullptr) return watch.grpc->check(nullptr);
  watch.grpc->consume_kick();  // forget what this thread has seen last: it may be old
  Millis lists = kNever;
  const CheckResult result = watch.grpc->check(&lists);
  watch.looks_at = result == kCheckedAndEmpty ? NextDue(watch, lists) : kNever;
  *next = std::min(*next, watch.looks_at);
  return result;
}

void ListInit() { TheWatch().grpc->list_init(); }

void ListShutdown() {
  Watch& watch = TheWatch();
  const std::lock_guard lock(watch.mutex);
  watch.due.clear();
  watch.looks_at = kNever;
  watch.grpc->list_shutdown();
}

void ConsumeKick() { TheWatch().grpc->consume_kick(); }

template <typename T>
T Find(const char* symbol) {
  return reinterpret_cast<T>(dlsym(RTLD_DEFAULT, symbol));
}

}  // namespace

bool WatchGrpcTimers() {
  if (!grpc::Version().starts_with("1.51.")) return false;
  static const TimerFunctions kOurs{Init, Cancel, Check, ListInit, ListShutdown, ConsumeKick};
  const auto* known = Find<const TimerFunctions*>("grpc_generic_timer_vtable");
  auto* const* present = Find<const TimerFunctions**>("grpc_timer_impl");
  const auto set =
      Find<void (*)(const TimerFunctions*)>("_Z19grpc_set_timer_implP17grpc_timer_vtable");
  const auto kick = Find<void (*)()>("_Z16grpc_kick_pollerv");
  if (known == nullptr || present == nullptr || *present != known) return false;
  if (set == nullptr || kick == nullptr) return false;
  Watch& watch = TheWatch();
  watch.grpc = known;
  watch.kick = kick;
  set(&kOurs);
  return true;
}

}  // namespace penstock
