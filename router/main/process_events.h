// What the main thread waits for: a termination signal, or another thread's word.
#pragma once

#include <cstdint>
#include <optional>

#include "common/time.h"

namespace penstock::router {

class ProcessEvents {
 public:
  // Blocks SIGTERM and SIGINT in this thread and all that it starts later.
  ProcessEvents();
  ~ProcessEvents();
  ProcessEvents(const ProcessEvents&) = delete;
  ProcessEvents& operator=(const ProcessEvents&) = delete;

  enum class What : std::uint8_t { kSignal, kWord, kTimeout };
  // Blocks; a signal goes first. A word counts once.
  What Wait();
  // The same, at most until then.
  What WaitUntil(Time until);

  // Any thread.
  void Say();

 private:
  What WaitFor(std::optional<Time> until);

  int signals_;
  int word_;
};

}  // namespace penstock::router
