#include "router/main/process_events.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace penstock::router {

ProcessEvents::ProcessEvents() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  word_ = ::eventfd(0, EFD_CLOEXEC);
}

ProcessEvents::~ProcessEvents() {
  ::close(signals_);
  ::close(word_);
}

ProcessEvents::What ProcessEvents::Wait() {
  pollfd fds[] = {{signals_, POLLIN, 0}, {word_, POLLIN, 0}};
  while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
  }
  if ((fds[0].revents & POLLIN) != 0) {
    signalfd_siginfo info;
    [[maybe_unused]] const auto read = ::read(signals_, &info, sizeof(info));
    return What::kSignal;
  }
  std::uint64_t count = 0;
  [[maybe_unused]] const auto read = ::read(word_, &count, sizeof(count));
  return What::kWord;
}

void ProcessEvents::Say() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(word_, &one, sizeof(one));
}

}  // namespace penstock::router
