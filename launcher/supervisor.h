// Starts the shards, then the router, watches them, and stops them in order: router first (it
// finishes its requests), then the shards.
//
// With one replica group nothing is restarted: when a child ends by itself, the rest is stopped and
// the outcome names the child. With several groups that holds until the server is ready, and for
// the router. After that a group that loses a rank, or that the router has lost, is killed and
// started again (RestartPolicy), and the others serve on; once every group has failed too often,
// the server ends.
//
// One thread owns it and runs it. It waits in poll() for signals, ended children, their output and
// their notices, with the next deadline as the only time limit: an idle server costs nothing.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/notify.h"
#include "launcher/child_process.h"
#include "launcher/line_buffer.h"
#include "launcher/restart_policy.h"

namespace penstock::launcher {

struct Timeouts {
  std::chrono::nanoseconds startup{0};  // without progress until everything is ready; 0 = none
  std::chrono::nanoseconds drain{0};    // the router's, from its SIGTERM until SIGKILL
  std::chrono::nanoseconds stop{0};     // a shard's, from its SIGTERM until SIGKILL
  // A shard that has been stopped (SIGSTOP) for so long counts as lost and is killed; 0 = never.
  std::chrono::nanoseconds rank{0};
  // In the place of drain and stop once a child has failed: there is little left to finish.
  std::chrono::nanoseconds failure{0};
  // A signal so soon after the first is taken for the same one: `timeout` and some shells send it
  // to the process and to its group.
  std::chrono::nanoseconds same_signal{0};
  RestartLimits restart;
};

// What the supervisor tells its surroundings, on its own thread.
class SupervisorObserver {
 public:
  virtual ~SupervisorObserver() = default;
  virtual void OnLine(const ChildSpec& child, std::string_view line) = 0;
  virtual void OnProgress(const ChildSpec& child, const ProgressNotice& progress) = 0;
  // `address` is what the router reported: host and port.
  virtual void OnReady(std::string_view address) = 0;
  virtual void OnStopping(std::string_view reason) = 0;
  // A replica group went down or came back; the server goes on.
  virtual void OnGroup(std::string_view news) = 0;
};

struct Outcome {
  int exit_code = 0;                         // common/exit_codes.h
  std::string error = {};                    // one line; empty after an orderly stop
  std::string culprit = {};                  // the child that the error is about, if any
  std::vector<std::string> last_lines = {};  // of the culprit's output
};

class Supervisor {
 public:
  // `signals` is a signalfd (or, in tests, anything that gives signalfd_siginfo records); it is not
  // owned. The first SIGINT, SIGTERM or SIGHUP stops in order, one more kills.
  // SIGCHLD tells that a child was stopped or goes on.
  Supervisor(std::vector<ChildSpec> shards, ChildSpec router, Timeouts timeouts, int signals,
             SupervisorObserver& observer);

  // Returns when every child has ended. Call it once.
  Outcome Run();

 private:
  using Clock = std::chrono::steady_clock;

  enum class Phase { kStarting, kServing, kDraining, kStoppingShards, kEnded };

  struct Child {
    explicit Child(ChildSpec the_spec) : spec(std::move(the_spec)) {}
    std::string Label() const;  // "shard-1 (rank 1, pid 4711)"
    bool alive() const { return process.has_value() && !exit.has_value(); }
    void Renew();  // as if it had never been started

    ChildSpec spec;
    std::optional<ChildProcess> process;
    std::optional<ExitStatus> exit;
    LineBuffer lines;
    LineBuffer notices;
    ProgressNotice progress;
    std::string failure;  // its FAILED notice
    bool ready = false;
    std::optional<Clock::time_point> stopped_until;  // it is stopped, and killed then
  };

  enum class GroupState {
    kUp,
    kEnding,   // its processes were killed and not all of them are gone
    kWaiting,  // for its next start
    kLoading,
    kGivenUp,
  };
  struct Group {
    explicit Group(const RestartLimits& limits) : policy(limits) {}
    GroupState state = GroupState::kUp;
    RestartPolicy policy;
    std::optional<Clock::time_point> due;  // of the next start, or the end of loading's patience
    std::string why;                       // it went down
  };

  void Start(Child& child);
  absl::Status Spawn(Child& child);
  std::vector<const Child*> Reap();
  void OnEnded(const Child& culprit);
  static std::string Describe(const Child& ended);
  void WaitForEvents();
  void ReadSignals();
  bool ForwardHangup();
  void ReadOutput(Child& child);
  void ReadNotices(Child& child);
  void OnNotice(Child& child, std::string_view line);
  void OnChildReady(Child& child, const ReadyNotice& notice);
  void CollectEnded();
  void OnDeadline();
  void Fail(int exit_code, std::string error, const Child* culprit);
  void BeginStop(std::string_view reason);
  void StopShards();
  void KillAll();
  void AdvanceStop();
  bool AllShardsReady() const;
  bool AnyShardAlive() const;
  std::string WaitingFor() const;
  void SetDeadline(std::chrono::nanoseconds timeout);
  std::optional<Clock::time_point> NextDeadline() const;

  // Shards that were stopped: supervisor_stops.cc
  void NoteStops();
  void KillStopped();

  // Several replica groups: supervisor_groups.cc
  bool GroupsRestart() const;
  static std::string GroupName(std::size_t group);
  static bool InGroup(const Child& child, std::size_t group) {
    return child.spec.rank.has_value() && static_cast<std::size_t>(child.spec.group) == group;
  }
  void FailGroup(std::size_t index, const std::string& why);
  void TakeReports();
  void AdvanceGroups();
  void ScheduleRestart(std::size_t index);
  void OnGroupsDue();
  void StartGroup(std::size_t index);
  void SetGroupDeadline(std::size_t index);
  void OnGroupMemberReady(std::size_t index);

  std::vector<Child> children_;  // the shards by group and rank, then the router; never resized
  std::vector<Group> groups_;
  std::vector<GroupLostNotice> reported_lost_;  // by the router
  Timeouts timeouts_;
  int signals_;
  SupervisorObserver& observer_;
  Phase phase_ = Phase::kStarting;
  std::optional<Clock::time_point> deadline_;
  Clock::time_point first_signal_;
  bool failed_ = false;
  Outcome outcome_;
};

}  // namespace penstock::launcher
