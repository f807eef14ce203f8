// What the main thread waits for: a termination signal, or another thread's word. SIGHUP is a
// termination signal, too, unless somebody wants it.
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
  // Blocks; a signal goes first. A word counts once.
  What Wait();
  // The same, at most until then.
  What WaitUntil(Time until);

  // `callback` runs inside the waits, once for each SIGHUP, and the wait goes on.
  void OnHangup(std::function<void()> callback) { on_hangup_ = std::move(callback); }

  // Any thread.
  void Say();

 private:
  What WaitFor(std::optional<Time> until);
  What WaitOnce(std::optional<Time> until);
  bool TakeSignal();  // false: somebody wanted it

  std::function<void()> on_hangup_;
  int signals_;
  int word_;
};

}  // namespace penstock::router
