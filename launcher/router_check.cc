#include "launcher/router_check.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "common/exit_codes.h"
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

std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

}  // namespace

Problem CheckRouter(ChildSpec router) {
  router.arguments.emplace_back("--check");
  absl::StatusOr<ChildProcess> process = ChildProcess::Spawn(router);
  if (!process.ok()) return {kExitFailure, Message(WithContext(process.status(), router.name))};
  const Clock::time_point deadline = Clock::now() + kPatience;
  const std::string said = ReadAll(process->output(), deadline);
  if (!WaitFor(process->pidfd(), deadline)) return {};
  const std::optional<ExitStatus> exit = process->Reap();
  if (!exit || (!exit->by_signal && exit->code == kExitOk)) return {};
  const std::string line = LastLine(said);
  const int code = exit->by_signal ? kExitFailure : exit->code;
  return {code, line.empty() ? "the router " + exit->Describe() : line};
}

}  // namespace penstock::launcher
