#include "launcher/child_output.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "common/status.h"

namespace penstock::launcher {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience(10);

// Until the descriptor is readable. False: the deadline came first.
bool WaitFor(int fd, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd poll = {fd, POLLIN, 0};
  return left.count() > 0 && ::poll(&poll, 1, static_cast<int>(left.count())) == 1;
}

// All that the child writes until it closes its output.
std::string ReadAll(int fd, Clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> piece;
  while (WaitFor(fd, deadline)) {
    const ssize_t size = ::read(fd, piece.data(), piece.size());
    if (size <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

absl::StatusOr<ChildOutput> RunForOutput(const ChildSpec& spec) {
  absl::StatusOr<ChildProcess> process = ChildProcess::Spawn(spec);
  if (!process.ok()) return WithContext(process.status(), spec.name);
  const Clock::time_point deadline = Clock::now() + kPatience;
  ChildOutput output;
  output.text = ReadAll(process->output(), deadline);
  if (WaitFor(process->pidfd(), deadline)) output.exit = process->Reap();
  return output;
}

}  // namespace penstock::launcher
