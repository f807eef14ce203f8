#include "launcher/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include "common/exit_codes.h"
#include "common/status.h"

namespace penstock::launcher {
namespace {

using std::chrono::nanoseconds;

// Reads what the descriptor has to give, but not for ever: more than a pipe holds, so that all is
// read that an ended child left, and little enough that a child that never stops writing cannot
// keep the others waiting. False at the end of the stream.
template <typename Sink>
bool Drain(int fd, Sink sink) {
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

bool SameProgress(const ProgressNotice& a, const ProgressNotice& b) {
  return a.stage == b.stage && a.done == b.done;
}

std::string Seconds(nanoseconds duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  std::string text = std::to_string(ms / 1000);
  if (ms % 1000 != 0) text += "." + std::to_string(ms % 1000 + 1000).substr(1);
  return text + " s";
}

// The codes of common/exit_codes.h that a child may hand through; anything else says nothing about
// the cause.
bool IsCodeOfOurs(const ExitStatus& exit) {
  return !exit.by_signal && exit.code >= kExitUsage && exit.code <= kExitAddress;
}

// The cause that a child left behind: its own notice, else its last line that says "error".
std::string CauseOf(const ExitStatus& exit, const std::string& failure, const LineBuffer& lines) {
  if (!failure.empty() || exit.by_signal) return failure;
  for (auto line = lines.last_lines().rbegin(); line != lines.last_lines().rend(); ++line) {
    const std::size_t found = line->find("error: ");
    if (found != std::string::npos) return line->substr(found + 7);
  }
  return "";
}

}  // namespace

std::string Supervisor::Child::Label() const {
  std::string text = spec.name + " (";
  if (spec.rank.has_value()) text += "rank " + std::to_string(*spec.rank) + ", ";
  return text + "pid " + std::to_string(process.has_value() ? process->pid() : 0) + ")";
}

Supervisor::Supervisor(std::vector<ChildSpec> shards, ChildSpec router, Timeouts timeouts,
                       int signals, SupervisorObserver& observer)
    : timeouts_(timeouts), signals_(signals), observer_(observer) {
  children_.reserve(shards.size() + 1);
  for (ChildSpec& shard : shards) {
    while (groups_.size() <= static_cast<std::size_t>(shard.group)) {
      groups_.emplace_back(timeouts_.restart);
    }
    children_.emplace_back(std::move(shard));
  }
  children_.emplace_back(std::move(router));
}

Outcome Supervisor::Run() {
  SetDeadline(timeouts_.startup);
  for (std::size_t i = 0; i + 1 < children_.size() && phase_ == Phase::kStarting; ++i) {
    Start(children_[i]);
  }
  while (true) {
    AdvanceStop();
    if (phase_ == Phase::kEnded) break;
    WaitForEvents();
    KillStopped();
    CollectEnded();
    TakeReports();
    AdvanceGroups();
    OnGroupsDue();
    if (deadline_.has_value() && Clock::now() >= *deadline_) OnDeadline();
  }
  return std::move(outcome_);
}

void Supervisor::Start(Child& child) {
  const absl::Status started = Spawn(child);
  if (!started.ok()) Fail(kExitFailure, Message(started), nullptr);
}

absl::Status Supervisor::Spawn(Child& child) {
  absl::StatusOr<ChildProcess> process = ChildProcess::Spawn(child.spec);
  if (!process.ok()) return WithContext(process.status(), child.spec.name);
  child.process.emplace(*std::move(process));
  return absl::OkStatus();
}

void Supervisor::WaitForEvents() {
  std::vector<pollfd> fds = {{signals_, POLLIN, 0}};
  for (Child& child : children_) {
    if (!child.alive()) continue;
    // A closed descriptor is -1, which poll() skips.
    for (int fd : {child.process->pidfd(), child.process->output(), child.process->notices()}) {
      fds.push_back({fd, POLLIN, 0});
    }
  }
  int timeout_ms = -1;
  if (const auto deadline = NextDeadline()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }
  if (::poll(fds.data(), fds.size(), timeout_ms) <= 0) return;
  // Output and notices first: what a child said before it ended must be known when its end is
  // judged.
  for (Child& child : children_) {
    if (!child.alive()) continue;
    ReadOutput(child);
    ReadNotices(child);
  }
  if (fds[0].revents != 0) ReadSignals();
}

void Supervisor::ReadSignals() {
  signalfd_siginfo info;
  int signal = 0;
  if (::read(signals_, &info, sizeof info) == sizeof info)
    signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD) return NoteStops();
  if (signal == 0 || (signal == SIGHUP && ForwardHangup())) return;
  if (Clock::now() < first_signal_ + timeouts_.same_signal) return;
  if (phase_ == Phase::kDraining || phase_ == Phase::kStoppingShards) {
    if (!failed_) outcome_ = {.exit_code = kExitFailure, .error = "stopped at once, as asked"};
    return KillAll();
  }
  first_signal_ = Clock::now();
  BeginStop(std::string("received SIG") + ::sigabbrev_np(signal));
}

// False when no child wants it. One that is not ready yet has just read what it would read again.
bool Supervisor::ForwardHangup() {
  bool wanted = false;
  for (const Child& child : children_) {
    if (!child.spec.takes_hangup) continue;
    wanted = true;
    if (child.alive() && child.ready) child.process->Signal(SIGHUP);
  }
  return wanted;
}

void Supervisor::ReadOutput(Child& child) {
  if (child.process->output() < 0) return;
  auto on_line = [&](std::string_view line) { observer_.OnLine(child.spec, line); };
  const bool more = Drain(child.process->output(),
                          [&](std::string_view bytes) { child.lines.Append(bytes, on_line); });
  if (more) return;
  child.lines.Finish(on_line);
  child.process->CloseOutput();
}

void Supervisor::ReadNotices(Child& child) {
  if (child.process->notices() < 0) return;
  auto on_line = [&](std::string_view line) { OnNotice(child, line); };
  const bool more = Drain(child.process->notices(),
                          [&](std::string_view bytes) { child.notices.Append(bytes, on_line); });
  if (!more) child.process->CloseNotices();
}

void Supervisor::OnNotice(Child& child, std::string_view line) {
  const Notice notice = ParseNotice(line);
  if (const auto* failed = std::get_if<FailedNotice>(&notice)) child.failure = failed->message;
  if (const auto* ready = std::get_if<ReadyNotice>(&notice)) OnChildReady(child, *ready);
  const auto* lost = std::get_if<GroupLostNotice>(&notice);
  if (lost != nullptr && lost->group < groups_.size()) reported_lost_.push_back(*lost);
  const auto* progress = std::get_if<ProgressNotice>(&notice);
  if (progress == nullptr) return;
  if (!SameProgress(child.progress, *progress)) {
    if (phase_ == Phase::kStarting) SetDeadline(timeouts_.startup);
    if (child.spec.rank && groups_[child.spec.group].state == GroupState::kLoading) {
      SetGroupDeadline(child.spec.group);
    }
  }
  child.progress = *progress;
  observer_.OnProgress(child.spec, *progress);
}

void Supervisor::OnChildReady(Child& child, const ReadyNotice& notice) {
  if (child.ready) return;
  child.ready = true;
  if (phase_ != Phase::kStarting) {
    if (child.spec.rank.has_value()) OnGroupMemberReady(child.spec.group);
    return;
  }
  SetDeadline(timeouts_.startup);
  Child& router = children_.back();
  if (router.ready) {
    phase_ = Phase::kServing;
    deadline_.reset();
    observer_.OnReady(notice.text);
  } else if (AllShardsReady()) {
    Start(router);
  }
}

std::vector<const Supervisor::Child*> Supervisor::Reap() {
  std::vector<const Child*> ended;
  for (Child& child : children_) {
    if (!child.alive()) continue;
    std::optional<ExitStatus> exit = child.process->Reap();
    if (!exit.has_value()) continue;
    ReadOutput(child);
    ReadNotices(child);
    child.lines.Finish([&](std::string_view line) { observer_.OnLine(child.spec, line); });
    child.process->CloseOutput();
    child.process->CloseNotices();
    child.exit = exit;
    ended.push_back(&child);
  }
  return ended;
}

// Collects every child that has ended. If several have ended since the last look, one that a signal
// killed is named before one that ended by itself: the others of a group end because of it.
void Supervisor::CollectEnded() {
  const Child* culprit = nullptr;
  std::map<int, const Child*> of_groups;  // where a group ends alone
  for (const Child* child : Reap()) {
    const bool alone = GroupsRestart() && child->spec.rank.has_value();
    const Child*& worst = alone ? of_groups[child->spec.group] : culprit;
    const bool better = worst == nullptr || (child->exit->by_signal && !worst->exit->by_signal);
    if (better) worst = child;
  }
  for (const auto& [group, child] : of_groups) FailGroup(group, Describe(*child));
  if (culprit != nullptr) OnEnded(*culprit);
}

void Supervisor::OnEnded(const Child& culprit) {
  const bool expected = phase_ == Phase::kDraining && &culprit == &children_.back();
  if (expected || phase_ == Phase::kStoppingShards || failed_) return;
  int exit_code = culprit.spec.rank.has_value() ? kExitShardLost : kExitFailure;
  if (IsCodeOfOurs(*culprit.exit)) exit_code = culprit.exit->code;
  Fail(exit_code, Describe(culprit), &culprit);
}

// "shard-1 (rank 1, pid 4711) was killed by signal 9 (SIGKILL)", with the cause if it left one.
std::string Supervisor::Describe(const Child& ended) {
  const std::string cause = CauseOf(*ended.exit, ended.failure, ended.lines);
  const std::string text = ended.Label() + " " + ended.exit->Describe();
  return cause.empty() ? text : text + ": " + cause;
}

void Supervisor::OnDeadline() {
  deadline_.reset();
  if (phase_ == Phase::kStarting) {
    Fail(kExitFailure,
         "not ready: no progress for " + Seconds(timeouts_.startup) + " (--startup-timeout), " +
             WaitingFor(),
         nullptr);
  } else if (phase_ == Phase::kDraining) {
    observer_.OnStopping("router: still running after its time limit, killed");
    children_.back().process->Kill();
  } else if (phase_ == Phase::kStoppingShards) {
    observer_.OnStopping("shards: still running after their time limit, killed");
    KillAll();
  }
}

// Keeps the first failure: what follows is its consequence.
void Supervisor::Fail(int exit_code, std::string error, const Child* culprit) {
  if (failed_) return;
  failed_ = true;
  outcome_.exit_code = exit_code;
  outcome_.error = std::move(error);
  if (culprit != nullptr) {
    outcome_.culprit = culprit->spec.name;
    const auto& lines = culprit->lines.last_lines();
    outcome_.last_lines.assign(lines.begin(), lines.end());
  }
  BeginStop(outcome_.error);
}

void Supervisor::BeginStop(std::string_view reason) {
  observer_.OnStopping(reason);
  for (Group& group : groups_) group.due.reset();
  Child& router = children_.back();
  if (!router.alive()) return StopShards();
  phase_ = Phase::kDraining;
  router.process->Signal(SIGTERM);
  SetDeadline(failed_ ? timeouts_.failure : timeouts_.drain);
}

void Supervisor::StopShards() {
  phase_ = Phase::kStoppingShards;
  for (Child& child : children_) {
    if (child.alive()) child.process->Signal(SIGTERM);
  }
  SetDeadline(failed_ ? timeouts_.failure : timeouts_.stop);
}

void Supervisor::KillAll() {
  phase_ = Phase::kStoppingShards;
  deadline_.reset();
  for (Child& child : children_) {
    if (child.alive()) child.process->Kill();
  }
}

void Supervisor::AdvanceStop() {
  if (phase_ == Phase::kDraining && !children_.back().alive()) StopShards();
  const bool any_alive = AnyShardAlive() || children_.back().alive();
  if (phase_ == Phase::kStoppingShards && !any_alive) phase_ = Phase::kEnded;
}

bool Supervisor::AllShardsReady() const {
  return std::all_of(children_.begin(), children_.end() - 1,
                     [](const Child& child) { return child.ready; });
}

bool Supervisor::AnyShardAlive() const {
  return std::any_of(children_.begin(), children_.end() - 1,
                     [](const Child& child) { return child.alive(); });
}

// "still waiting for shard-1 (loading 10 of 20 bytes)".
std::string Supervisor::WaitingFor() const {
  std::string text;
  for (const Child& child : children_) {
    if (child.ready || !child.process.has_value()) continue;
    text += text.empty() ? "still waiting for " : ", ";
    text += child.spec.name;
    const ProgressNotice& progress = child.progress;
    if (progress.stage.empty()) continue;
    text += " (" + progress.stage + " " + std::to_string(progress.done) + " of " +
            std::to_string(progress.total) + (progress.unit.empty() ? "" : " ") + progress.unit +
            ")";
  }
  return text;
}

std::optional<Supervisor::Clock::time_point> Supervisor::NextDeadline() const {
  std::optional<Clock::time_point> next = deadline_;
  const auto consider = [&next](std::optional<Clock::time_point> time) {
    if (time.has_value() && (!next.has_value() || *time < *next)) next = time;
  };
  for (const Group& group : groups_) consider(group.due);
  for (const Child& child : children_) consider(child.stopped_until);
  return next;
}

void Supervisor::SetDeadline(nanoseconds timeout) {
  deadline_.reset();
  if (timeout.count() > 0) deadline_ = Clock::now() + timeout;
}

}  // namespace penstock::launcher
