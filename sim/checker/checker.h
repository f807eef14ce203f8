// Checks the guarantees of docs/scheduling-guarantees.md from outside, after every input. It knows
// nothing but Inputs and Outputs: from them it keeps its own account of requests, queues, blocks,
// slots, budgets and plans in flight, shares no code with the core, and looks at the core's
// counters only to compare them with its own. So it checks simulated runs and recorded ones alike.
//
//   G1 blocks conserved, one writer, readers see their own tokens    KvModel
//   G2 one terminal event, G3 gapless and exact                      EventOracle, GroupModel
//   G4 runnable => a plan, G5 budgets, G8 nothing after the end      GroupModel
//   G6 overtaking, G7 preemptions and worst cases                    Checker
// G9 (same inputs, same outputs) needs a second core: see sim/run_seed.h and penstock-replay.
//
// After the first finding the account may be wrong: later findings may only follow from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"
#include "scheduler/scheduler.h"
#include "sim/checker/event_oracle.h"
#include "sim/checker/findings.h"
#include "sim/checker/group_model.h"
#include "sim/checker/request_model.h"

namespace penstock::sim {

class Checker {
 public:
  explicit Checker(const scheduler::Config& config) : config_(config), oracle_(findings_) {}

  // After Apply(input, out); `state` is Inspect().
  void Check(const scheduler::Input& input, const scheduler::Outputs& out,
             const scheduler::Snapshot& state);
  // When nothing is in flight, all groups are up and no input is to come: everybody has ended.
  void CheckEnd(const scheduler::Snapshot& state);

  const Findings& findings() const { return findings_; }
  // What the runs exercised: so that a sweep can show that nothing is checked in vain.
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

  void Lose(GroupId group);
  void EndSequence(Request& request);
  // A preempted request whose last results are in waits again.
  void Requeue(Request& request);
  void RequeueSettled();
  bool NeverFits(const Request& request) const;
  std::uint32_t waiting(bool restarts_too) const;

  // Decisions and plans of one input, in the order in which they were made.
  void WalkOutputs(const scheduler::Outputs& out);
  void TakeDecision(const Decision& decision);
  void TakeAdmission(const Decision& decision, Request& request);
  void TakePreemption(const Decision& decision, Request& request);
  void CountOvertakes(const Request& admitted);
  // G6 in steps, where the bound is simple: first come, first served, full reservations.
  std::uint64_t MostSteps() const;
  static bool IsLate(const Request& request, const SequenceResult& part);
  void CountWaiting();
  void CheckStarted(const scheduler::Outputs& out);
  void CheckPlan(const scheduler::PlanOut& plan, const scheduler::StepInfo& info);

  void CheckCounters(const scheduler::Snapshot& state);
  void CheckProgress();
  void CheckQueue(GroupId id, const GroupModel& group);
  const Request* OldestWaiting() const;
  void CheckWorstCases();

  const scheduler::Config config_;
  Findings findings_;
  EventOracle oracle_;
  std::map<RequestId, Request> requests_;
  std::map<GroupId, GroupModel> groups_;
  std::set<RequestId> alive_;  // waiting, admitted or preempted
  std::uint64_t arrivals_ = 0;
  std::set<SequenceId> used_ids_;
  std::uint64_t preemptions_ = 0;
  std::uint64_t cached_tokens_ = 0;
  bool draining_ = false;
};

}  // namespace penstock::sim
