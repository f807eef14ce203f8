// The events that the main thread waits for: a termination signal, or Say from another thread.
// SIGHUP is a termination signal unless it has a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "common/time.h"

namespace penstock::router {

class ProcessEvents {
 public:
  // Blocks SIGTERM, SIGINT and SIGHUP in this thread and all that it starts later.
  ProcessEvents();
  ~ProcessEvents();
  ProcessEvents(const ProcessEvents&) = delete;
  ProcessEvents& operator=(const ProcessEvents&) = delete;

  enum class What : std::uint8_t { kSignal, kWord, kTimeout };
  // Blocks. A signal comes before Say. Each Say ends one wait.
  What Wait();
  // The same with a deadline.
  What WaitUntil(Time until);

  // Runs `callback` inside the waits, once for each SIGHUP, and continues to wait.
  void OnHangup(std::function<void()> callback) { on_hangup_ = std::move(callback); }

  // Any thread.
  void Say();

 private:
  What WaitFor(std::optional<Time> until);
  What WaitOnce(std::optional<Time> until);
  bool TakeSignal();  // false: the callback handled it

  std::function<void()> on_hangup_;
  int signals_;
  int word_;
};

}  // namespace penstock::router
