#include "router/main/process_events.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace penstock::router {

ProcessEvents::ProcessEvents() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  word_ = ::eventfd(0, EFD_CLOEXEC);
}

ProcessEvents::~ProcessEvents() {
  ::close(signals_);
  ::close(word_);
}

ProcessEvents::What ProcessEvents::Wait() { return WaitFor(std::nullopt); }
ProcessEvents::What ProcessEvents::WaitUntil(Time until) { return WaitFor(until); }

ProcessEvents::What ProcessEvents::WaitFor(std::optional<Time> until) {
  while (true) {
    const What what = WaitOnce(until);
    if (what != What::kSignal || TakeSignal()) return what;
  }
}

bool ProcessEvents::TakeSignal() {
  signalfd_siginfo info = {};
  [[maybe_unused]] const auto read = ::read(signals_, &info, sizeof(info));
  if (info.ssi_signo != SIGHUP || !on_hangup_) return true;
  on_hangup_();
  return false;
}

ProcessEvents::What ProcessEvents::WaitOnce(std::optional<Time> until) {
  pollfd fds[] = {{signals_, POLLIN, 0}, {word_, POLLIN, 0}};
  int ready = -1;
  while (ready < 0) {
    int wait_ms = -1;
    if (until.has_value()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - SteadyNow());
      wait_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 100'000'000));
    }
    ready = ::poll(fds, 2, wait_ms);
    if (ready < 0 && errno != EINTR) break;
  }
  if (ready == 0) return What::kTimeout;
  if ((fds[0].revents & POLLIN) != 0) return What::kSignal;
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(word_, &count, sizeof(count));
  return What::kWord;
}

void ProcessEvents::Say() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(word_, &one, sizeof(one));
}

}  // namespace penstock::router
