#include "launcher/supervised_child.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "common/exit_codes.h"
#include "common/status.h"
#include "launcher/library_error.h"
#include "launcher/memory_limit.h"

namespace penstock::launcher {
namespace {

// Reads what the descriptor has. The bound is more than a pipe holds, so that all output of an
// ended child is read. It also keeps a child that never stops writing from blocking the others.
// Returns false at the end of the stream.
template <typename Sink>
bool ReadAvailable(int fd, Sink sink) {
  std::array<char, 16384> buffer;
  for (int reads = 0; reads < 16; ++reads) {
    const ssize_t size = ::read(fd, buffer.data(), buffer.size());
    if (size > 0) {
      sink(std::string_view(buffer.data(), static_cast<std::size_t>(size)));
    } else if (size == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

// What makes the kernel send SIGBUS.
constexpr const char* kMappedFile =
    "a file that it maps is shorter than it should be, such as a library of torch or a file of the "
    "model, or /dev/shm is full";

// The cause that a child left: its FAILED notice, else its last line that says "error".
std::string CauseOf(const ChildSpec& child, const ExitStatus& exit, const std::string& failure,
                    const LineBuffer& lines) {
  if (!failure.empty()) {
    const std::string limit = SaysNoMemory(failure) ? AddressLimitError() : "";
    return limit.empty() ? failure : failure + ": " + limit;
  }
  if (std::string memory = MemoryLimitError(exit, lines.last_lines()); !memory.empty())
    return memory;
  if (exit.by_signal) return exit.code == SIGBUS ? kMappedFile : "";
  for (auto line = lines.last_lines().rbegin(); line != lines.last_lines().rend(); ++line) {
    if (const std::string library = LibraryError(*line, child); !library.empty()) return library;
    const std::size_t found = line->find("error: ");
    if (found != std::string::npos) return line->substr(found + 7);
  }
  return "";
}

}  // namespace

absl::Status SupervisedChild::Start() {
  process_.reset();
  state_ = State();
  absl::StatusOr<ChildProcess> process = ChildProcess::Spawn(spec_);
  if (!process.ok()) return WithContext(process.status(), spec_.name);
  process_.emplace(*std::move(process));
  return absl::OkStatus();
}

void SupervisedChild::AddArguments(std::vector<std::string> arguments) {
  std::ranges::move(arguments, std::back_inserter(spec_.arguments));
}

std::string SupervisedChild::Label() const {
  std::string text = spec_.name + " (";
  if (is_shard()) text += "rank " + std::to_string(*spec_.rank) + ", ";
  return text + "pid " + std::to_string(started() ? process_->pid() : 0) + ")";
}

std::string SupervisedChild::DescribeEnd() const {
  const std::string cause = CauseOf(spec_, *state_.exit, state_.failure, state_.lines);
  const std::string text = Label() + " " + state_.exit->Describe();
  return cause.empty() ? text : text + ": " + cause;
}

std::string SupervisedChild::DescribeProgress() const {
  if (state_.progress.stage.empty()) return spec_.name;
  if (state_.progress.total == 0) return spec_.name + " (reading " + state_.progress.stage + ")";
  return spec_.name + " (" + state_.progress.stage + " " + std::to_string(state_.progress.done) +
         " of " + std::to_string(state_.progress.total) +
         (state_.progress.unit.empty() ? "" : " ") + state_.progress.unit + ")";
}

std::vector<int> SupervisedChild::Descriptors() const {
  if (!alive()) return {};
  return {process_->pidfd(), process_->output(), process_->notices()};
}

void SupervisedChild::ReadOutput(const LineBuffer::OnLine& on_line) {
  if (process_->output() < 0) return;
  const bool more = ReadAvailable(
      process_->output(), [&](std::string_view bytes) { state_.lines.Append(bytes, on_line); });
  if (more) return;
  state_.lines.Finish(on_line);
  process_->CloseOutput();
}

void SupervisedChild::ReadNotices(const OnNotice& on_notice) {
  if (process_->notices() < 0) return;
  const auto on_line = [&](std::string_view line) {
    const Notice notice = ParseNotice(line);
    if (const auto* failed = std::get_if<FailedNotice>(&notice)) state_.failure = failed->message;
    if (const auto* plan = std::get_if<MemoryPlanNotice>(&notice)) state_.memory_plan = plan->text;
    on_notice(notice);
  };
  const bool more = ReadAvailable(
      process_->notices(), [&](std::string_view bytes) { state_.notices.Append(bytes, on_line); });
  if (!more) process_->CloseNotices();
}

bool SupervisedChild::SetProgress(const ProgressNotice& progress) {
  const bool is_new =
      progress.stage != state_.progress.stage || progress.done != state_.progress.done;
  state_.progress = progress;
  return is_new;
}

bool SupervisedChild::Reap(const LineBuffer::OnLine& on_line, const OnNotice& on_notice) {
  if (!alive()) return false;
  const std::optional<ExitStatus> exit = process_->Reap();
  if (!exit.has_value()) return false;
  ReadOutput(on_line);
  ReadNotices(on_notice);
  state_.lines.Finish(on_line);
  process_->CloseOutput();
  process_->CloseNotices();
  state_.exit = exit;
  return true;
}

void SupervisedChild::NoteStop(std::chrono::nanoseconds limit) {
  const std::optional<bool> stopped = process_->TakeStop();
  if (!stopped.has_value()) return;
  state_.stopped_until.reset();
  if (*stopped) state_.stopped_until = Clock::now() + limit;
}

bool SupervisedChild::TakeOverdueStop(Clock::time_point now) {
  if (!alive() || !state_.stopped_until.has_value() || now < *state_.stopped_until) return false;
  state_.stopped_until.reset();
  return true;
}

}  // namespace penstock::launcher
