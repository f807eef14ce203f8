// Starts the shards, then the router, watches them, and stops them in order: the router first (it
// finishes its requests), then the shards.
//
// A lost process ends a server that is not ready yet. Later ReplicaGroup kills and restarts the
// group of a lost rank, and the other groups continue to serve. When every group is given up, the
// server ends. A lost router is started again while the shards keep their weights. With
// RestartLimits::single off, the loss of the router or of the only group ends the server. The
// outcome names the child that failed.
//
// One thread owns it and runs it. The thread waits in poll() for signals, ended children, their
// output and their notices, until the next deadline. An idle server uses no processor time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/exit_codes.h"
#include "common/notify.h"
#include "launcher/child_process.h"
#include "launcher/replica_group.h"
#include "launcher/restart_policy.h"
#include "launcher/supervised_child.h"

namespace penstock::launcher {

struct Timeouts {
  std::chrono::nanoseconds startup{0};  // without progress until everything is ready; 0 = none
  std::chrono::nanoseconds drain{0};    // the router's, from its SIGTERM until SIGKILL
  std::chrono::nanoseconds stop{0};     // a shard's, from its SIGTERM until SIGKILL
  // A shard that is stopped (SIGSTOP) for this long counts as lost and is killed; 0 = never.
  std::chrono::nanoseconds rank{0};
  // A group that the router lost is ended after this time. A rank whose process ends first is named
  // as the cause, with how it ended.
  std::chrono::nanoseconds report{0};
  // Replaces drain and stop once a child has failed: there is little left to finish.
  std::chrono::nanoseconds failure{0};
  // A second signal within this time counts as the first: `timeout` and some shells signal both
  // the process and its group.
  std::chrono::nanoseconds same_signal{0};
  RestartLimits restart;
  RestartLimits router_restart;  // its `single` is not used
};

// Observes the supervisor. All calls come from the supervisor's thread.
class SupervisorObserver {
 public:
  virtual ~SupervisorObserver() = default;
  virtual void OnLine(const ChildSpec& child, std::string_view line) = 0;
  virtual void OnProgress(const ChildSpec& child, const ProgressNotice& progress) = 0;
  // `address` is what the router reported: host and port.
  virtual void OnReady(std::string_view address) = 0;
  virtual void OnStopping(std::string_view reason) = 0;
  // A replica group or the router went down or came back; the server continues.
  virtual void OnGroup(GroupNews kind, std::string_view news) = 0;
};

struct Outcome {
  int exit_code = 0;                         // common/exit_codes.h
  std::string error = {};                    // one line; empty after an orderly stop
  std::string culprit = {};                  // the child whose last lines these are, if any
  std::vector<std::string> last_lines = {};  // of the culprit's output, if it did not say its error
};

class Supervisor {
 public:
  // `signals` is a signalfd, or in tests any descriptor that yields signalfd_siginfo records; it is
  // not owned. The first SIGINT, SIGTERM or SIGHUP stops in order, a second one kills. SIGCHLD
  // means that a child was stopped or continued. `root`: for tests, the folder below which /proc
  // and /sys are read.
  Supervisor(std::vector<ChildSpec> shards, ChildSpec router, Timeouts timeouts, int signals,
             SupervisorObserver& observer, std::string root = "");

  // Returns when every child has ended. Call it once.
  Outcome Run();

 private:
  using Clock = std::chrono::steady_clock;

  enum class Phase { kStarting, kServing, kDraining, kStoppingShards, kEnded };

  void Start(SupervisedChild& child);
  void WaitForEvents();
  std::vector<SupervisedChild*> Children();
  void ReadSignals();
  bool ForwardHangup();
  void ReadChild(SupervisedChild& child);
  void OnNotice(SupervisedChild& child, const Notice& notice);
  void OnProgress(SupervisedChild& child, const ProgressNotice& progress);
  void OnChildReady(SupervisedChild& child, const ReadyNotice& notice);
  void NoteStops();
  void KillStopped();
  void CollectEnded();
  void OnEnded(const SupervisedChild& child);
  void LogOtherFailure(const SupervisedChild& child);
  bool RouterRestarts(const ExitStatus& exit) const;
  void LoseRouter(int exit_code, const std::string& why);
  void AdvanceRouter();
  bool IsKilledForMemory(const ExitStatus& exit);
  static std::string DescribeKill(const SupervisedChild& child);
  void NameLateKill(const SupervisedChild& child);
  void LoseRank(const SupervisedChild& shard, int exit_code, const std::string& why);
  void HandleReports();
  void AdvanceGroups();
  bool Serves() const;
  bool GroupsRestart() const;
  void OnDeadline();
  void Fail(int exit_code, std::string error, const SupervisedChild* culprit);
  void BeginStop(std::string_view reason);
  void CancelRestarts();
  void StopShards();
  void KillAll();
  void AdvanceStop();
  std::string WaitingFor();
  void SetDeadline(std::chrono::nanoseconds timeout);
  std::optional<Clock::time_point> NextDeadline() const;

  Timeouts timeouts_;
  int signals_;
  SupervisorObserver& observer_;
  const std::string root_;
  std::uint64_t oom_kills_;              // by the kernel, when they were last counted
  std::vector<SupervisedChild> shards_;  // by group and rank; never resized
  SupervisedChild router_;
  RestartPolicy router_policy_;
  std::optional<Clock::time_point> router_due_;  // when a lost router starts again
  std::vector<ReplicaGroup> groups_;
  struct Report {
    GroupLostNotice lost;
    Clock::time_point due;
  };
  std::vector<Report> reports_;  // of the router, in the order of their times
  std::optional<Clock::time_point> router_lost_shard_;  // when its end is reported
  Phase phase_ = Phase::kStarting;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point first_signal_;
  bool failed_ = false;
  int lost_code_ = kExitShardLost;  // when no group is left
  std::string last_end_;            // the last end that was reported, with its cause
  Outcome outcome_;
};

}  // namespace penstock::launcher
