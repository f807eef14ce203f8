// The checker's own account of one formed group: slots, sequences, plans in flight, budgets. Built
// from the plans and results that pass by; every plan is checked against it before it is applied.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"
#include "sim/checker/findings.h"
#include "sim/checker/kv_model.h"
#include "sim/checker/request_model.h"

namespace penstock::sim {

struct SequenceModel {
  RequestId request;
  SlotId slot;
  KvTable kv;
  std::uint32_t prompt_length = 0;     // of this start: the request's prompt and earlier tokens
  std::uint32_t base = 0;              // tokens that earlier starts generated
  std::uint32_t planned = 0;           // prompt positions that plans compute, or found in the cache
  std::uint32_t generated = 0;         // tokens in results, reported or surplus
  std::uint32_t tokens_in_flight = 0;  // the most that plans in flight yield
  std::uint32_t plans_in_flight = 0;
  std::uint32_t candidates = 0;  // of contrastive search, else 0
  bool ended = false;            // terminal or preempted: in no later plan
  // Padded KV layout: its row stands in a part since the plan of that step, whose result frees its
  // blocks.
  std::optional<StepId> joined;
  bool listed = false;  // in the present plan
};

class GroupModel {
 public:
  GroupModel(const scheduler::Config& config, const scheduler::GroupUp& up, Findings& findings);

  Epoch epoch() const { return epoch_; }
  const GroupCapacity& capacity() const { return capacity_; }
  std::uint32_t step_tokens() const;
  std::uint32_t prefill_tokens() const;

  // Admissions are decisions; a plan with the start may follow later.
  void Admit(RequestModel& request);
  void CheckPlan(const scheduler::PlanOut& out, const scheduler::StepInfo& info,
                 std::map<RequestId, RequestModel>& requests, std::set<SequenceId>& used_ids);
  // The oldest plan in flight has this result, else nothing happens and it is false.
  bool TakeResult(const StepResult& result);
  // Running, or ended and still named by a plan in flight; else null.
  const SequenceModel* Find(SequenceId sequence) const;
  // The request's sequence ended, or was preempted.
  void End(RequestModel& request);
  std::uint32_t in_flight() const { return static_cast<std::uint32_t>(in_flight_.size()); }
  std::uint32_t running() const { return running_; }  // admitted, not ended
  std::uint32_t retiring() const { return static_cast<std::uint32_t>(sequences_.size()) - live_; }
  const KvModel& kv() const { return kv_; }
  // Slots that the shards take for occupied.
  std::size_t slots_taken() const { return slots_.size(); }
  std::uint64_t reserved_tokens() const { return reserved_tokens_; }
  bool Fits(const RequestModel& request) const;
  // Whether a further request could be admitted by the rules of guaranteed admission.
  bool HasRoomFor(const RequestModel& request,
                  const std::map<RequestId, RequestModel>& requests) const;
  // G4: what the next plan could hold for a sequence that has a place here.
  bool SomethingRunnable(const std::map<RequestId, RequestModel>& requests) const;
  // G7: blocks that those who are never preempted may still come to hold, and hold.
  std::uint64_t WorstCaseBlocks(const std::map<RequestId, RequestModel>& requests) const;

 private:
  struct InFlight {
    StepId step;
    std::map<SequenceId, std::uint32_t> named;  // most tokens
  };

  // Rows that a decode of the request cannot do without.
  std::uint32_t RowsOf(const RequestModel& request) const {
    const std::uint32_t candidates = request.arrival.sampling.Candidates();
    return candidates > 0 ? candidates : 1;
  }
  void Complain(const char* guarantee, const std::string& what);
  void CheckHeader(const StepPlan& plan);
  void ApplyEnds(const StepPlan& plan);
  void ApplyStart(const SequenceStart& start, RequestModel& request,
                  std::set<SequenceId>& used_ids);
  void CheckStart(const SequenceStart& start, const RequestModel& request);
  void ApplyBlockOp(const BlockOp& op);
  void ApplySegment(const Segment& segment, const RequestModel& request, SequenceModel& sequence,
                    InFlight& step);
  std::uint32_t PlanPrompt(const Segment& segment, SequenceModel& sequence);
  std::uint32_t PlanDecode(const Segment& segment, const RequestModel& request,
                           SequenceModel& sequence);
  void CheckBudgets(const StepPlan& plan, const scheduler::StepInfo& info);
  void CheckTotalTokens(const std::map<RequestId, RequestModel>& requests);
  void CheckGroups(const StepPlan& plan);
  void ApplyRows(const StepPlan& plan);
  void CheckRows(const StepPlan& plan, const scheduler::StepInfo& info);
  void CheckCellsPromised(const std::map<RequestId, RequestModel>& requests);
  std::uint64_t LeastCells(const std::map<RequestId, RequestModel>& requests,
                           const RequestModel* newcomer) const;
  std::uint64_t BlocksOf(const RequestModel& request, const SequenceModel& sequence) const;
  void CheckStallFree(const StepPlan& plan, const std::map<RequestId, RequestModel>& requests);
  bool Decodable(const SequenceModel& sequence, const RequestModel& request) const;
  void TakePart(const SequenceResult& part);
  void ReclaimUnnamed(SequenceId id);

  const scheduler::Config config_;
  const GroupId id_;
  const Epoch epoch_;
  const GroupCapacity capacity_;
  Findings& findings_;
  KvModel kv_;
  StepId last_step_;
  std::map<SequenceId, SequenceModel> sequences_;  // live, and ended ones that plans still name
  std::map<SlotId, SequenceId> slots_;             // as the shards know them
  std::deque<InFlight> in_flight_;
  std::uint32_t live_ = 0;
  std::uint32_t running_ = 0;
  std::uint64_t reserved_tokens_ = 0;
  std::uint32_t decode_rows_ = 0;  // of a step in which all running decode
};

}  // namespace penstock::sim
