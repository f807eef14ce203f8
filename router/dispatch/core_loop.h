// The thread that owns the Scheduler. It takes inputs from a mailbox, applies them with the current
// time, sends plans to the shards and delivers events. It also reads the shards' results from their
// streams, so that a step wakes one thread only. Between inputs it sleeps until the next deadline.
//
// The mailbox is bounded: Post refuses an arrival if `mailbox_arrivals` others wait. Other inputs
// are bounded too, since each accepted request has at most one Cancel and one FinishAt.
//
// Threads: Post, Attach, Watch and Stop come from any thread. The listener is called on the loop's
// thread.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "router/dispatch/group_link.h"
#include "router/dispatch/step_feed.h"
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
  // Each input with its outputs, in order, after its plans were sent. Must not block.
  virtual void OnApplied(const scheduler::Input&, const scheduler::Outputs&) {}
  // Adds to a report for the readers of the live view.
  virtual void Describe(StepReport&) {}
  // Changes of pinned prefixes. Called before OnOutputs with the requests' own events. Must not
  // block.
  virtual void OnPins(const std::vector<scheduler::PinChange>&) {}
  // Called after the plans of the same inputs were sent. May move events out. Must not block.
  virtual void OnOutputs(std::span<scheduler::Event> events,
                         std::span<const Decision> decisions) = 0;
  // When OnOutputs must be called again even if there are no new events.
  virtual std::optional<Time> HoldsUntil() const { return std::nullopt; }
  // The group is lost. An earlier OnOutputs call had what happened to its requests; other groups
  // are not affected. Must not block: destroying the link waits for its streams, so do that
  // elsewhere.
  virtual void OnGroupLost(LostGroup lost) = 0;
};

struct CoreLoopOptions {
  scheduler::Config scheduler;
  std::size_t mailbox_arrivals = 1024;
  std::chrono::milliseconds step_timeout{60'000};  // a plan that takes longer loses the group
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

  // Starts to run plans on this group. A lost group may be attached again after OnGroupLost, with a
  // higher epoch.
  void Attach(std::unique_ptr<GroupLink> link);

  using What = decltype(scheduler::Input::what);
  // Returns false if it refuses the input, since the mailbox is full (arrivals only) or the loop
  // has stopped.
  bool Post(What what);

  // Applies the input when the loop next wakes after `at`. Bounded: beyond kMostLater the earliest
  // one is applied at once.
  void PostLater(Time at, What what);
  static constexpr std::size_t kMostLater = 256;

  // Calls `done` on the loop's thread once all plans that are in flight now have returned.
  void AfterPlans(std::function<void()> done);

  // See Engine::Watch.
  bool Watch(std::shared_ptr<StepSink> sink) { return feed_.Watch(std::move(sink)); }

  void EndWatch() { feed_.Close(); }

  // Ends the loop and the groups' streams. No listener call after it has returned.
  void Stop();

 private:
  struct Mailbox;
  struct Logs;

  void OnStepDone(GroupId group, StepResult result) override;
  void OnGroupLost(GroupId group, Epoch epoch, std::string reason, bool in_order) override;

  void Run();
  bool Collect(std::vector<What>& inputs);
  void CollectLater(std::vector<What>& inputs);
  void Apply(What what);
  void CountResult(const scheduler::StepDone& done, Time now);
  void SendPlans(Time now);
  void CountDecisions();
  void Deliver();
  void Up(const scheduler::GroupUp& up);
  void TakeOut(const scheduler::GroupLost& lost);
  void CallAfterPlans();
  void ShowGauges();
  void Feed();
  void FlushRecord();
  std::chrono::steady_clock::time_point NextDeadline() const;

  const CoreLoopOptions options_;
  CoreListener& listener_;
  Metrics& metrics_;
  std::unique_ptr<Mailbox> mailbox_;
  StepFeed feed_;

  // For the loop's thread only.
  struct Core;
  std::unique_ptr<Core> core_;
  std::unique_ptr<Logs> logs_;
};

}  // namespace penstock::router
