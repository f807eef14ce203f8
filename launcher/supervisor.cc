#include "launcher/supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "common/exit_codes.h"
#include "common/memory_groups.h"
#include "common/status.h"
#include "launcher/duration_text.h"
#include "launcher/memory_limit.h"

namespace penstock::launcher {
namespace {

using std::chrono::nanoseconds;

// Whether the child chose one of common/exit_codes.h. Other exits do not reveal the cause.
bool HasOwnExitCode(const ExitStatus& exit) {
  return !exit.by_signal && exit.code >= kExitUsage && exit.code <= kExitAddress;
}

}  // namespace

Supervisor::Supervisor(std::vector<ChildSpec> shards, ChildSpec router, Timeouts timeouts,
                       int signals, SupervisorObserver& observer, std::string root)
    : timeouts_(timeouts),
      signals_(signals),
      observer_(observer),
      root_(std::move(root)),
      oom_kills_(OomKills(root_)),
      shards_(std::make_move_iterator(shards.begin()), std::make_move_iterator(shards.end())),
      router_(std::move(router)),
      router_policy_(timeouts_.router_restart) {
  for (auto first = shards_.begin(); first != shards_.end();) {
    const int group = first->spec().group;
    const auto last = std::find_if(first, shards_.end(), [group](const SupervisedChild& shard) {
      return shard.spec().group != group;
    });
    groups_.emplace_back(
        groups_.size(), std::span(first, last), timeouts_.restart, timeouts_.startup,
        [this](GroupNews kind, std::string_view news) { observer_.OnGroup(kind, news); });
    first = last;
  }
}

Outcome Supervisor::Run() {
  SetDeadline(timeouts_.startup);
  for (SupervisedChild& shard : shards_) {
    if (phase_ == Phase::kStarting) Start(shard);
  }
  while (true) {
    AdvanceStop();
    if (phase_ == Phase::kEnded) break;
    WaitForEvents();
    KillStopped();
    CollectEnded();
    HandleReports();
    AdvanceGroups();
    AdvanceRouter();
    if (deadline_.has_value() && Clock::now() >= *deadline_) OnDeadline();
  }
  return std::move(outcome_);
}

void Supervisor::Start(SupervisedChild& child) {
  const absl::Status started = child.Start();
  if (!started.ok()) Fail(kExitFailure, Message(started), nullptr);
}

std::vector<SupervisedChild*> Supervisor::Children() {
  std::vector<SupervisedChild*> children;
  for (SupervisedChild& shard : shards_) children.push_back(&shard);
  children.push_back(&router_);
  return children;
}

void Supervisor::WaitForEvents() {
  std::vector<pollfd> fds = {{signals_, POLLIN, 0}};
  for (const SupervisedChild* child : Children()) {
    for (const int fd : child->Descriptors()) fds.push_back({fd, POLLIN, 0});
  }
  int timeout_ms = -1;
  if (const auto deadline = NextDeadline()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now());
    timeout_ms = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
  }
  if (::poll(fds.data(), fds.size(), timeout_ms) <= 0) return;
  // Output and notices come first, since they tell why a child ended.
  for (SupervisedChild* child : Children()) {
    if (child->alive()) ReadChild(*child);
  }
  if (fds[0].revents != 0) ReadSignals();
}

void Supervisor::ReadSignals() {
  signalfd_siginfo info;
  int signal = 0;
  if (::read(signals_, &info, sizeof info) == sizeof info) {
    signal = static_cast<int>(info.ssi_signo);
  }
  if (signal == SIGCHLD) return NoteStops();
  if (signal == 0 || (signal == SIGHUP && ForwardHangup())) return;
  if (Clock::now() < first_signal_ + timeouts_.same_signal) return;
  if (phase_ == Phase::kDraining || phase_ == Phase::kStoppingShards) {
    if (!failed_)
      outcome_ = {.exit_code = kExitFailure, .error = "stopped at once, as a second signal asks"};
    return KillAll();
  }
  first_signal_ = Clock::now();
  std::string reason = std::string("received SIG") + ::sigabbrev_np(signal);
  if (signal == SIGHUP) reason += " (there is no --api-keys-file and no --tls-cert to read again)";
  BeginStop(reason);
}

// Returns false if no child accepts it. A child that is not ready reads its files anyway.
bool Supervisor::ForwardHangup() {
  bool accepted = false;
  for (const SupervisedChild* child : Children()) {
    if (!child->spec().takes_hangup) continue;
    accepted = true;
    if (child->alive() && child->ready()) child->Signal(SIGHUP);
  }
  return accepted;
}

// The order of what a child writes: its progress, the line that says what is done, then READY.
void Supervisor::ReadChild(SupervisedChild& child) {
  std::vector<std::string> lines;
  std::vector<Notice> notices;
  child.ReadOutput([&](std::string_view line) { lines.emplace_back(line); });
  child.ReadNotices([&](const Notice& notice) { notices.push_back(notice); });
  const auto progress_end = std::ranges::stable_partition(notices, [](const Notice& notice) {
                              return std::holds_alternative<ProgressNotice>(notice);
                            }).begin();
  for (auto it = notices.begin(); it != progress_end; ++it) OnNotice(child, *it);
  for (const std::string& line : lines) observer_.OnLine(child.spec(), line);
  for (auto it = progress_end; it != notices.end(); ++it) OnNotice(child, *it);
}

void Supervisor::OnNotice(SupervisedChild& child, const Notice& notice) {
  if (const auto* ready = std::get_if<ReadyNotice>(&notice)) OnChildReady(child, *ready);
  if (const auto* progress = std::get_if<ProgressNotice>(&notice)) OnProgress(child, *progress);
  const auto* lost = std::get_if<GroupLostNotice>(&notice);
  // A report on a group that is down is late: the rank that ended is known.
  if (lost != nullptr && lost->group < groups_.size() && groups_[lost->group].may_fail()) {
    reports_.push_back({*lost, Clock::now() + timeouts_.report});
  }
}

void Supervisor::OnProgress(SupervisedChild& child, const ProgressNotice& progress) {
  if (child.SetProgress(progress)) {
    if (phase_ == Phase::kStarting || (&child == &router_ && deadline_.has_value())) {
      SetDeadline(timeouts_.startup);
    }
    if (child.is_shard()) groups_[child.spec().group].OnProgress();
  }
  observer_.OnProgress(child.spec(), progress);
}

void Supervisor::OnChildReady(SupervisedChild& child, const ReadyNotice& notice) {
  if (child.ready()) return;
  child.set_ready();
  if (phase_ != Phase::kStarting) {
    if (child.is_shard()) return groups_[child.spec().group].OnRankReady();
    if (phase_ != Phase::kServing) return;
    deadline_.reset();
    return observer_.OnGroup(GroupNews::kProgress, "the router serves again on " + notice.text);
  }
  SetDeadline(timeouts_.startup);
  const bool shards_ready = std::all_of(shards_.begin(), shards_.end(),
                                        [](const SupervisedChild& shard) { return shard.ready(); });
  if (router_.ready()) {
    phase_ = Phase::kServing;
    deadline_.reset();
    // A free port that the system chose must stay the same.
    const std::string& address = notice.text;
    router_.AddArguments({"--rejoin", "--port=" + address.substr(address.rfind(':') + 1)});
    observer_.OnReady(address);
  } else if (shards_ready) {
    Start(router_);
  }
}

void Supervisor::NoteStops() {
  if (timeouts_.rank.count() <= 0) return;
  for (SupervisedChild& shard : shards_) {
    if (shard.alive()) shard.NoteStop(timeouts_.rank);
  }
}

// Kills shards that stayed stopped (SIGSTOP, a debugger) for too long. The shard's end is reported
// here, where its name is known; the router would only report a broken connection.
void Supervisor::KillStopped() {
  for (SupervisedChild& shard : shards_) {
    if (!shard.TakeOverdueStop(Clock::now())) continue;
    shard.Kill();
    if (phase_ == Phase::kStoppingShards) continue;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeouts_.rank);
    LoseRank(shard, kExitShardLost,
             shard.Label() + " had been stopped for " + std::to_string(ms.count()) +
                 " ms (--rank-timeout)");
  }
}

// Collects every child that has ended. If several ended, a child killed by a signal is the cause:
// its death makes the other ranks of the group end.
void Supervisor::CollectEnded() {
  constexpr int kWholeServer = -1;
  std::map<int, const SupervisedChild*> causes;  // by group where groups end alone
  std::vector<const SupervisedChild*> ended;
  for (SupervisedChild* child : Children()) {
    const bool ended_now =
        child->Reap([&](std::string_view line) { observer_.OnLine(child->spec(), line); },
                    [&](const Notice& notice) { OnNotice(*child, notice); });
    if (!ended_now) continue;
    ended.push_back(child);
    const bool alone = GroupsRestart() && child->is_shard();
    const SupervisedChild*& cause = causes[alone ? child->spec().group : kWholeServer];
    if (cause == nullptr || (child->exit()->by_signal && !cause->exit()->by_signal)) cause = child;
  }
  for (const auto& [group, child] : causes) OnEnded(*child);
  for (const SupervisedChild* child : ended) LogOtherFailure(*child);
}

// Logs why a child failed that is not the cause. Each text is logged once: ranks often fail alike.
void Supervisor::LogOtherFailure(const SupervisedChild& child) {
  if (child.failure().empty() || last_end_.find(child.failure()) != last_end_.npos) return;
  last_end_ = child.failure();
  observer_.OnLine(child.spec(), child.failure());
}

void Supervisor::OnEnded(const SupervisedChild& child) {
  const bool for_memory = IsKilledForMemory(*child.exit());
  const bool expected = phase_ == Phase::kDraining && &child == &router_;
  if (expected || phase_ == Phase::kStoppingShards || failed_) {
    if (for_memory) NameLateKill(child);
    return;
  }
  int exit_code = child.is_shard() ? kExitShardLost : kExitFailure;
  std::string why = child.DescribeEnd();
  if (HasOwnExitCode(*child.exit())) {
    exit_code = child.exit()->code;
  } else if (!MemoryLimitError(*child.exit(), child.last_lines()).empty()) {
    exit_code = kExitMemory;
  }
  if (for_memory) {
    exit_code = kExitMemory;
    why = DescribeKill(child);
  }
  last_end_ = why;
  if (child.is_shard()) return LoseRank(child, exit_code, why);
  if (RouterRestarts(*child.exit())) return LoseRouter(exit_code, why);
  // The router ends when its only group is lost, and may be collected before the rank.
  if (exit_code == kExitShardLost) {
    router_lost_shard_ = Clock::now() + timeouts_.report;
  } else {
    Fail(exit_code, why, &child);
  }
}

// A code of its own says that the router refuses to run.
bool Supervisor::RouterRestarts(const ExitStatus& exit) const {
  return timeouts_.restart.single && phase_ == Phase::kServing && !HasOwnExitCode(exit);
}

// The shards keep their weights. They free what the old router ran when its streams break.
void Supervisor::LoseRouter(int exit_code, const std::string& why) {
  deadline_.reset();
  const std::optional<nanoseconds> pause = router_policy_.OnFailure(Clock::now());
  if (!pause.has_value()) return Fail(exit_code, why + "; it ended too often", &router_);
  observer_.OnGroup(GroupNews::kTrouble, why + "; it starts again in " + Seconds(*pause));
  router_due_ = Clock::now() + *pause;
}

void Supervisor::AdvanceRouter() {
  if (!router_due_.has_value() || Clock::now() < *router_due_) return;
  router_due_.reset();
  SetDeadline(timeouts_.startup);
  Start(router_);
}

// The kernel counts a kill before it sends the signal.
bool Supervisor::IsKilledForMemory(const ExitStatus& exit) {
  if (!exit.by_signal || exit.code != SIGKILL) return false;
  const std::uint64_t kills = OomKills(root_);
  return std::exchange(oom_kills_, kills) < kills;
}

std::string Supervisor::DescribeKill(const SupervisedChild& child) {
  const std::string why = child.DescribeEnd() + " by the kernel: out of memory";
  return why + (child.memory_plan().empty() ? "" : " (" + child.memory_plan() + ")");
}

// The memory of a large process takes the kernel a second to free. Until then it has not ended for
// the launcher, which may have begun to stop meanwhile: on a signal, or because another rank or the
// router lost the connection. The kill is the first cause of what such a loss led to.
void Supervisor::NameLateKill(const SupervisedChild& child) {
  const std::string why = DescribeKill(child);
  observer_.OnLine(child.spec(), why);
  const int code = outcome_.exit_code;
  if (code != kExitOk && code != kExitFailure && code != kExitDevice && code != kExitShardLost) {
    return;
  }
  failed_ = true;
  outcome_ = {.exit_code = kExitMemory, .error = why};
}

// Every lost rank comes here: its process ended, or it stayed stopped. A report of the router that
// names a group comes to HandleReports.
void Supervisor::LoseRank(const SupervisedChild& shard, int exit_code, const std::string& why) {
  if (!GroupsRestart()) return Fail(exit_code, why, &shard);
  const auto group = static_cast<std::size_t>(shard.spec().group);
  std::erase_if(reports_, [&](const Report& report) { return report.lost.group == group; });
  if (groups_.size() == 1) lost_code_ = exit_code;
  // The router's report may have come first, without the cause.
  if (exit_code == kExitMemory && !groups_[group].may_fail()) observer_.OnLine(shard.spec(), why);
  groups_[group].Fail(why);
}

// Runs after CollectEnded, so that a rank whose process ended is reported by its name. The router
// sees a closed socket before the process can be collected, so its reports wait for a moment.
void Supervisor::HandleReports() {
  const auto now = Clock::now();
  const auto later = std::ranges::find_if(reports_, [&](const auto& it) { return it.due > now; });
  for (auto report = reports_.begin(); report != later; ++report) {
    if (GroupsRestart()) groups_[report->lost.group].Fail(report->lost.reason);
  }
  reports_.erase(reports_.begin(), later);
  if (!router_lost_shard_.has_value() || *router_lost_shard_ > now) return;
  router_lost_shard_.reset();
  if (phase_ != Phase::kStoppingShards) Fail(kExitShardLost, router_.DescribeEnd(), &router_);
}

void Supervisor::AdvanceGroups() {
  for (ReplicaGroup& group : groups_) {
    const bool given_up_before = group.given_up();
    group.Advance(Serves());
    group.OnTime(Clock::now());
    const bool any_left = std::any_of(groups_.begin(), groups_.end(),
                                      [](const auto& other) { return !other.given_up(); });
    if (!Serves() || given_up_before || any_left) continue;
    Fail(lost_code_, "no replica group is left: " + group.why(), nullptr);
  }
}

// Requests may be open. During a drain, those of a lost group need it back.
bool Supervisor::Serves() const {
  return phase_ == Phase::kServing || (phase_ == Phase::kDraining && !failed_);
}

bool Supervisor::GroupsRestart() const {
  return Serves() && (groups_.size() > 1 || timeouts_.restart.single);
}

void Supervisor::OnDeadline() {
  deadline_.reset();
  if (phase_ == Phase::kStarting) {
    Fail(kExitFailure,
         "not ready: no progress for " + Seconds(timeouts_.startup) + ", " + WaitingFor() +
             "; raise --startup-timeout",
         nullptr);
  } else if (phase_ == Phase::kServing) {  // a router that was started again
    observer_.OnGroup(GroupNews::kTrouble, "the router makes no progress within --startup-timeout");
    router_.Kill();
  } else if (phase_ == Phase::kDraining) {
    observer_.OnStopping("the router still runs after its time limit; it is killed");
    router_.Kill();
  } else if (phase_ == Phase::kStoppingShards) {
    observer_.OnStopping("shards still run after their time limit; they are killed");
    KillAll();
  }
}

// Keeps the first failure: later ones are its consequences.
void Supervisor::Fail(int exit_code, std::string error, const SupervisedChild* culprit) {
  if (failed_) return;
  failed_ = true;
  outcome_.exit_code = exit_code;
  outcome_.error = std::move(error);
  // The error is printed when all processes have ended.
  std::string reason = outcome_.error;
  if (culprit != nullptr && !culprit->failure().empty()) {
    reason.resize(std::min(reason.size(), reason.find(": " + culprit->failure())));
  } else if (culprit != nullptr) {
    outcome_.culprit = culprit->spec().name;
    const auto& lines = culprit->last_lines();
    outcome_.last_lines.assign(lines.begin(), lines.end());
  }
  BeginStop(reason);
}

void Supervisor::BeginStop(std::string_view reason) {
  observer_.OnStopping(reason);
  if (failed_) CancelRestarts();
  if (!router_.alive()) return StopShards();
  phase_ = Phase::kDraining;
  router_.Signal(SIGTERM);
  SetDeadline(failed_ ? timeouts_.failure : timeouts_.drain);
}

void Supervisor::CancelRestarts() {
  router_due_.reset();
  for (ReplicaGroup& group : groups_) group.CancelRestart();
}

void Supervisor::StopShards() {
  phase_ = Phase::kStoppingShards;
  CancelRestarts();
  for (const SupervisedChild* child : Children()) {
    if (child->alive()) child->Signal(SIGTERM);
  }
  SetDeadline(failed_ ? timeouts_.failure : timeouts_.stop);
}

void Supervisor::KillAll() {
  phase_ = Phase::kStoppingShards;
  CancelRestarts();
  deadline_.reset();
  for (const SupervisedChild* child : Children()) {
    if (child->alive()) child->Kill();
  }
}

void Supervisor::AdvanceStop() {
  if (phase_ == Phase::kDraining && !router_.alive()) StopShards();
  if (phase_ != Phase::kStoppingShards) return;
  const std::vector<SupervisedChild*> children = Children();
  const bool any_alive = std::any_of(children.begin(), children.end(),
                                     [](const SupervisedChild* child) { return child->alive(); });
  if (!any_alive) phase_ = Phase::kEnded;
}

// "still waiting for shard-1 (loading 10 of 20 bytes), router". Once the shards are ready, the
// router connects to them and warms them up.
std::string Supervisor::WaitingFor() {
  std::string text;
  for (const SupervisedChild* child : Children()) {
    if (child->ready() || !child->started()) continue;
    text += (text.empty() ? "still waiting for " : ", ") + child->DescribeProgress();
  }
  const bool warms_up = std::ranges::all_of(shards_, &SupervisedChild::ready);
  if (warms_up && router_.started()) text += " and the warm-up of the shards";
  return text;
}

std::optional<Supervisor::Clock::time_point> Supervisor::NextDeadline() const {
  std::optional<Clock::time_point> next = deadline_;
  const auto consider = [&next](const std::optional<Clock::time_point>& time) {
    if (time.has_value() && (!next.has_value() || *time < *next)) next = time;
  };
  for (const ReplicaGroup& group : groups_) consider(group.due());
  for (const SupervisedChild& shard : shards_) consider(shard.stopped_until());
  if (!reports_.empty()) consider(reports_.front().due);
  consider(router_lost_shard_);
  consider(router_due_);
  return next;
}

void Supervisor::SetDeadline(nanoseconds timeout) {
  deadline_.reset();
  if (timeout.count() > 0) deadline_ = Clock::now() + timeout;
}

}  // namespace penstock::launcher
