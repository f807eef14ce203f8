// The events that the main thread waits for: a termination signal, or Say from another thread.
// SIGHUP is a termination signal unless it has a callback.
#pragma once

#include <signal.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/time.h"

namespace penstock::router {

class ProcessEvents {
 public:
  // Blocks SIGTERM, SIGINT, SIGHUP and the signal of Say in this thread and all that it starts
  // later.
  ProcessEvents();

  enum class What : std::uint8_t { kSignal, kWord, kTimeout };
  // Blocks until the deadline, if one is given. A signal comes before Say. Each Say ends one wait.
  What Wait(std::optional<Time> until = std::nullopt);

  // Runs `callback` inside the waits, once for each SIGHUP, and continues to wait.
  void OnHangup(std::function<void()> callback) { on_hangup_ = std::move(callback); }

  // Any thread.
  static void Say();

 private:
  sigset_t signals_;
  std::function<void()> on_hangup_;
};

}  // namespace penstock::router
