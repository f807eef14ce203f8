#include "common/notify.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "common/log.h"

namespace penstock {
namespace {

constexpr std::size_t kMaxLine = 1000;

template <typename T>
bool ParseWhole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Cuts the first word off `rest`.
std::string_view NextWord(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
  return word;
}

// Less than half of what the socket holds has not been read yet.
bool IsReadInTime(int fd) {
  int held = 0;
  int capacity = 0;
  socklen_t size = sizeof capacity;
  return ::ioctl(fd, SIOCOUTQ, &held) == 0 &&
         ::getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &capacity, &size) == 0 && held < capacity / 2;
}

}  // namespace

Notifier Notifier::FromEnvironment() {
  const char* text = std::getenv(kNotifyVariable);
  int fd = -1;
  const bool valid = text != nullptr && ParseWhole(std::string_view(text), fd) && fd > 2 &&
                     ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
  ::unsetenv(kNotifyVariable);
  return valid ? Notifier(fd) : Notifier();
}

Notifier::Notifier(Notifier&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Notifier& Notifier::operator=(Notifier&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Notifier::~Notifier() {
  if (fd_ >= 0) ::close(fd_);
}

void Notifier::Progress(std::string_view stage, std::uint64_t done, std::uint64_t total,
                        std::string_view unit) const {
  if (!IsReadInTime(fd_)) return;
  std::string line =
      "PROGRESS " + std::string(stage) + " " + std::to_string(done) + " " + std::to_string(total);
  if (!unit.empty()) line += " " + std::string(unit);
  Send(std::move(line));
}

void Notifier::Ready(std::string_view text) const { Send("READY " + std::string(text)); }

void Notifier::Failed(std::string_view message) const {
  if (!active()) return log::Error(message);
  Send("FAILED " + std::string(message));
}

void Notifier::MemoryPlan(std::string_view plan) const { Send("MEMORY_PLAN " + std::string(plan)); }

void Notifier::GroupLost(std::uint32_t group, std::string_view reason) const {
  Send("GROUP_LOST " + std::to_string(group) + " " + std::string(reason));
}

void Notifier::Send(std::string line) const {
  if (fd_ < 0) return;
  if (line.size() >= kMaxLine) line.resize(kMaxLine - 1);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  line += '\n';
  // A launcher that has gone is noticed elsewhere (the parent-death signal), so the result does not
  // matter here.
  (void)!::send(fd_, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

Notice ParseNotice(std::string_view line) {
  const std::string_view kind = NextWord(line);
  if (kind == "READY") return ReadyNotice{std::string(line)};
  if (kind == "FAILED") return FailedNotice{std::string(line)};
  if (kind == "MEMORY_PLAN") return MemoryPlanNotice{std::string(line)};
  if (kind == "GROUP_LOST") {
    GroupLostNotice lost;
    if (!ParseWhole(NextWord(line), lost.group)) return std::monostate();
    lost.reason = line;
    return lost;
  }
  if (kind != "PROGRESS") return std::monostate();
  ProgressNotice notice;
  notice.stage = std::string(NextWord(line));
  if (!ParseWhole(NextWord(line), notice.done)) return std::monostate();
  if (!ParseWhole(NextWord(line), notice.total)) return std::monostate();
  notice.unit = std::string(line);
  return notice;
}

}  // namespace penstock
