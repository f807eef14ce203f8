// The shell round the pure core: the one thread that owns the Scheduler. It takes inputs from a
// mailbox, stamps them with the time, applies them, sends plans to the shards and hands events on.
// The same thread takes the shards' results from their streams, so that a step wakes one thread
// only. Between inputs it sleeps there until the next deadline; idle, it never wakes.
//
// The mailbox is bounded: an arrival beyond `mailbox_arrivals` waiting ones is refused by Post, and
// everything else is bounded by the requests that were let in (one cancel, one finish_at and one
// result per plan each).
//
// Threading: Post, Attach and Stop from any thread; the listener is called on the loop's own
// thread.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "router/dispatch/group_link.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::router {

class Metrics;

struct LostGroup {
  GroupId group;
  std::string reason;
  std::unique_ptr<GroupLink> link;  // abandoned
};

class CoreListener {
 public:
  virtual ~CoreListener() = default;
  // What became of prefixes that requests asked to keep; before the requests' own events. Must not
  // block.
  virtual void OnPins(const std::vector<scheduler::PinChange>&) {}
  // After the plans of the same inputs were sent; events may be moved out. Must not block.
  virtual void OnOutputs(std::span<scheduler::Event> events,
                         std::span<const Decision> decisions) = 0;
  // When OnOutputs wants to be called again although nothing new has come.
  virtual std::optional<Time> HoldsUntil() const { return std::nullopt; }
  // The group serves no more; failed requests are in an OnOutputs call before. Other groups are not
  // affected. Must not block: who takes the link waits for the end of its streams elsewhere.
  virtual void OnGroupLost(LostGroup lost) = 0;
};

struct CoreLoopOptions {
  scheduler::Config scheduler;
  std::size_t mailbox_arrivals = 1024;
  std::chrono::milliseconds step_timeout{60'000};  // a plan without its results loses the group
  std::string step_log;                            // file, empty = none: one JSON line per step
  std::string record;                              // file, empty = none: the input log
};

class CoreLoop final : private GroupListener {
 public:
  // The listener and the metrics must outlive the loop.
  CoreLoop(CoreLoopOptions options, CoreListener& listener, Metrics& metrics);
  ~CoreLoop() override;  // Stop
  CoreLoop(const CoreLoop&) = delete;
  CoreLoop& operator=(const CoreLoop&) = delete;

  // Opens the log files and starts the thread. Errors name the option and the file.
  absl::Status Start();

  // From now on this group runs plans. A group may come again once its loss was told, with a higher
  // epoch.
  void Attach(std::unique_ptr<GroupLink> link);

  using What = decltype(scheduler::Input::what);
  // False: the mailbox is full (arrivals only) or the loop has stopped; the input was not taken.
  bool Post(What what);

  // Ends the loop, then the groups' streams. No listener call after it has returned.
  void Stop();

 private:
  struct Mailbox;
  struct Logs;

  void OnStepDone(GroupId group, StepResult result) override;
  void OnGroupLost(GroupId group, Epoch epoch, std::string reason) override;

  void Run();
  bool Collect(std::vector<What>& inputs);
  void Apply(What what);
  void CountResult(const scheduler::StepDone& done, Time now);
  void SendPlans(Time now);
  void CountDecisions();
  void Deliver();
  void Up(const scheduler::GroupUp& up);
  void TakeOut(const scheduler::GroupLost& lost);
  void ShowGauges();
  void FlushRecord();
  std::chrono::steady_clock::time_point NextDeadline() const;

  const CoreLoopOptions options_;
  CoreListener& listener_;
  Metrics& metrics_;
  std::unique_ptr<Mailbox> mailbox_;

  // The loop's thread only.
  struct Core;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Logs> logs_;
};

}  // namespace penstock::router
