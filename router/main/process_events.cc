#include "router/main/process_events.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace penstock::router {

ProcessEvents::ProcessEvents() {
  sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGRTMIN}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

ProcessEvents::What ProcessEvents::Wait(std::optional<Time> until) {
  while (true) {
    timespec wait{};
    if (until) {
      const auto left = std::max(*until - SteadyNow(), Duration(0));
      const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
      wait = {seconds.count(), (left - seconds).count()};
    }
    // The lowest of several pending signals comes first, and SIGRTMIN is the highest.
    const int signal = ::sigtimedwait(&signals_, nullptr, until ? &wait : nullptr);
    if (signal < 0 && errno == EAGAIN) return What::kTimeout;
    if (signal < 0) continue;  // interrupted
    if (signal == SIGRTMIN) return What::kWord;
    if (signal != SIGHUP || !on_hangup_) return What::kSignal;
    on_hangup_();
  }
}

void ProcessEvents::Say() { ::kill(::getpid(), SIGRTMIN); }

}  // namespace penstock::router
