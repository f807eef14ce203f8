// Checks the guarantees of docs/scheduling-guarantees.md after every input of the core. It sees
// only Inputs and Outputs and shares no code with the core. From them it models requests, queues,
// blocks, slots, budgets and plans in flight, and compares the core's counters with its own. So it
// can check a recorded run as well as a simulated one.
//
// KvModel checks G1. EventOracle checks G2 and G3. GroupModel checks G3, G4, G5 and G8. Checker
// and QueueModel check G6 and G7, LossModel checks G10, ShareModel G11. G9 (same inputs, same
// outputs) needs a second core: see sim/run.h.
//
// After the first finding the model may be wrong, so later findings may be consequences of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"
#include "scheduler/scheduler.h"
#include "sim/checker/event_oracle.h"
#include "sim/checker/findings.h"
#include "sim/checker/group_model.h"
#include "sim/checker/loss_model.h"
#include "sim/checker/queue_model.h"
#include "sim/checker/request_model.h"
#include "sim/model/core_model.h"

namespace penstock::sim {

class Checker {
 public:
  explicit Checker(const scheduler::Config& config)
      : config_(config), oracle_(findings_), model_(config) {}

  // Call after Apply(input, out), with Inspect() as `state`.
  void Check(const scheduler::Input& input, const scheduler::Outputs& out,
             const scheduler::Snapshot& state);
  // Call when nothing is in flight, all groups are up and no input follows: all requests have
  // ended.
  void CheckEnd(const scheduler::Snapshot& state);

  const Findings& findings() const { return findings_; }
  // What the run exercised. A sweep prints it, to show that the checks had something to check.
  std::uint64_t preemptions() const { return preemptions_; }
  std::uint64_t cached_tokens() const { return cached_tokens_; }

 private:
  using Request = RequestModel;

  void On(const scheduler::Arrival& arrival);
  void On(const scheduler::Cancel& cancel);
  void On(const scheduler::FinishAt& finish);
  void On(const scheduler::StepDone& done);
  void On(const scheduler::GroupUp& up);
  void On(const scheduler::GroupLost& lost);
  void On(const scheduler::Drain&) { draining_ = true; }
  void On(const scheduler::ForgetPrefixes&) {}
  void On(const scheduler::Tick&) {}

  void Lose(const scheduler::GroupLost& lost);
  void EndSequence(Request& request);
  // A preempted request waits again once its last results arrived.
  void Requeue(Request& request);
  void RequeueSettled();
  bool NeverFits(const Request& request) const;
  std::uint32_t waiting(bool restarts_too) const;

  // Takes decisions and plans of one input in the order in which the core made them.
  void WalkOutputs(const scheduler::Outputs& out);
  void TakeDecision(const Decision& decision);
  void TakeAdmission(const Decision& decision, Request& request);
  void TakePreemption(const Decision& decision, Request& request);
  void TakeDeferral(const Decision& decision, Request& request);
  void CheckDecisionCounts(const scheduler::Outputs& out);
  static bool IsLate(const Request& request, const SequenceResult& part);
  void CheckStarted(const scheduler::Outputs& out);
  void CheckPlan(const scheduler::PlanOut& plan, const scheduler::StepInfo& info);

  void CheckCounters(const scheduler::Snapshot& state);
  void CheckProgress();
  void CheckQueue(GroupId id, const GroupModel& group);
  const Request* FirstWaiting(const GroupModel& group);
  void CheckWorstCases();

  const scheduler::Config config_;
  Findings findings_;
  EventOracle oracle_;
  CoreModel model_;
  std::map<RequestId, Request> requests_;
  std::map<GroupId, GroupModel> groups_;
  std::set<RequestId> alive_;  // waiting, admitted or preempted
  QueueModel queue_{config_, requests_, alive_, findings_};
  LossModel losses_{config_, requests_, alive_, groups_, oracle_, findings_};
  Time now_{};
  std::uint64_t arrivals_ = 0;
  std::set<SequenceId> used_ids_;
  std::uint64_t preemptions_ = 0;
  std::uint64_t cached_tokens_ = 0;
  bool draining_ = false;
  std::uint32_t refusals_left_ = 0;  // decisions of this input that were not taken yet
  std::size_t queued_ = 0;           // requests that came to the queue since the last input
};

}  // namespace penstock::sim
