// Starts the shards, then the router, watches them, and stops them in order: router first (it
// finishes its requests), then the shards. Nothing is restarted: when a child ends by itself, the
// rest is stopped and the outcome names the child.
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

namespace penstock::launcher {

struct Timeouts {
  std::chrono::nanoseconds startup{0};  // without progress until everything is ready; 0 = none
  std::chrono::nanoseconds drain{0};    // the router's, from its SIGTERM until SIGKILL
  std::chrono::nanoseconds stop{0};     // a shard's, from its SIGTERM until SIGKILL
  // In the place of both once a child has failed: there is little left to finish.
  std::chrono::nanoseconds failure{0};
  // A signal so soon after the first is taken for the same one: `timeout` and some shells send it
  // to the process and to its group.
  std::chrono::nanoseconds same_signal{0};
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

    ChildSpec spec;
    std::optional<ChildProcess> process;
    std::optional<ExitStatus> exit;
    LineBuffer lines;
    LineBuffer notices;
    ProgressNotice progress;
    std::string failure;  // its FAILED notice
    bool ready = false;
  };

  void Start(Child& child);
  void WaitForEvents();
  void ReadSignals();
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

  std::vector<Child>
      children_;  // the shards by rank, then the router; never resized after construction
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
