// The scheduler of one replica group. It keeps up to pipeline_depth plans in flight and takes their
// results.
//
// The Scheduler makes a step in three calls, since all groups share one queue:
//   BeginStep   decodes of all running sequences, then prefill chunks of prompts that have started
//   Admit       a request that passed every check of admission(), as often as the budgets allow
//   FinishStep  emits the plan, if there is one
//
// Parts, by the state that they own:
//   SequenceTable   the running and retiring sequences, their blocks and slots
//   StepDraft       the plan being composed
//   StepsInFlight   the plans whose results have not arrived
//   Preemption      deficits of the step being composed, and the KV headroom
//   PaddedLayout    decode sub-batches
//   GroupAdmission  rules that admit requests one by one or together
//   Retirement      sequences that end or go back to the queue
//
// Not synchronised. Does not move: its parts refer to each other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "scheduler/admission/admission_policy.h"
#include "scheduler/admission/group_admission.h"
#include "scheduler/admission/output_lengths.h"
#include "scheduler/config.h"
#include "scheduler/cost/cost_model.h"
#include "scheduler/input.h"
#include "scheduler/kv/prefix_sharing.h"
#include "scheduler/kv/text_regime.h"
#include "scheduler/output.h"
#include "scheduler/preemption.h"
#include "scheduler/scheduler.h"
#include "scheduler/step/padded_layout.h"
#include "scheduler/step/retirement.h"
#include "scheduler/step/sequence_table.h"
#include "scheduler/step/step_draft.h"
#include "scheduler/step/steps_in_flight.h"

namespace penstock::scheduler {

class GroupScheduler {
 public:
  // `lengths` must outlive the group. It learns from the requests that end here.
  GroupScheduler(const Config& config, const GroupUp& up, OutputLengths& lengths);
  GroupScheduler(const GroupScheduler&) = delete;
  GroupScheduler& operator=(const GroupScheduler&) = delete;

  GroupId id() const { return id_; }
  Epoch epoch() const { return epoch_; }
  std::uint32_t running() const { return table_.running(); }
  std::uint32_t plans_in_flight() const { return in_flight_.size(); }
  // The running request that was admitted first.
  std::optional<RequestId> OldestRunning() const;
  const GroupAdmission& admission() const { return admission_; }
  // Whether it can ever run the request, and compute the bits of its output so far.
  bool Fits(const Work& work) const { return admission_.Fits(work.request) && Continues(work); }

  // The next step takes memory for decodes, or gives back the headroom of sequences that ended.
  bool StepChangesMemory() const {
    return running() > 0 || preemption_.headroom() > 0 || preemption_.window_headroom() > 0;
  }
  bool CanPlan() const { return in_flight_.size() < config_.pipeline_depth; }
  // `due`: a request for this group that waited too long, or null. Sequences yield to it.
  void BeginStep(const WaitingRequest* due, Time now, Outputs& out);
  void Admit(Work work, SequenceId id, Time now, Outputs& out);
  // Emits the plan. `waiting`: requests in the queue. Returns false if there is nothing to compute;
  // a plan that only ends sequences is made if `ends_alone`.
  bool FinishStep(std::uint32_t waiting, bool ends_alone, Outputs& out);

  // Ignores a result that is not of the oldest step in flight.
  void OnResult(const StepResult& result, Time now, Outputs& out);
  // Preempted requests that must be queued again. Call after BeginStep, OnResult and Lose.
  std::vector<Work> TakePreempted() { return retirement_.TakePreempted(); }

  // Returns false if the request does not run here.
  bool Cancel(RequestId request, Time now, Outputs& out);
  bool FinishAt(RequestId request, std::uint32_t token_count, Time now, Outputs& out);

  void Forget(const ForgetPrefixes& prefixes);
  // Emits what happened to pinned prefixes since the last call.
  void EmitPinChanges(Outputs& out);
  // Its requests can continue elsewhere: TakePreempted has them. Without recovery_timeout the
  // running ones end with an error. The object must not be used afterwards.
  void Lose(const GroupLost& lost, Time now, Outputs& out);

  void AddTo(Snapshot& sum) const;

 private:
  bool Continues(const Work& work) const {
    return config_.recovery_timeout == Duration(0) || work.generated.empty() ||
           work.arithmetic_class == arithmetic_class_;
  }
  void YieldTo(const WaitingRequest& due, Time now, Outputs& out);
  std::uint32_t MaxRows(std::uint32_t step_tokens) const;
  // Moves the window to the next row and draws blocks for `positions` positions.
  void Grow(Sequence& sequence, std::uint64_t positions);
  void AddDecode(Sequence& sequence, Time now, Outputs& out);
  void AddChunk(Sequence& sequence, Time now, Outputs& out);
  // Chooses where the prompt of a recurrent model is cut.
  void SetCut(Sequence& sequence, const PrefixMatch& match) const;
  // Saves a snapshot if the plan computes the prompt up to a cut.
  void SaveState(const Sequence& sequence);
  StepInfo DescribeStep(std::uint32_t waiting, Duration predicted);
  // Starts sequences again that reach the original length with this result (TextRegime).
  void Recompute(std::span<const InFlightReference> references, Time now, Outputs& out);
  void TakeResult(const SequenceResult& result, Time now, Outputs& out);
  void ReportPrompt(Sequence& sequence, const SequenceResult& result, std::uint32_t count,
                    Outputs& out);
  void ReportTokens(Sequence& sequence, const SequenceResult& result, std::uint32_t count,
                    Outputs& out);

  const Config config_;
  const GroupId id_;
  const Epoch epoch_;
  const std::uint64_t arithmetic_class_;
  const GroupCapacity capacity_;
  const StepBudget budget_;  // of every step
  const std::unique_ptr<AdmissionPolicy> policy_;
  SequenceTable table_;
  const TextRegime regime_;
  PrefixSharing sharing_;
  Retirement retirement_;
  Preemption preemption_;
  PaddedLayout layout_;
  StepDraft draft_;
  StepsInFlight in_flight_;
  GroupAdmission admission_;
  CostModel cost_;
  std::uint32_t max_rows_ = 1;  // of each decode in the step being composed, drafts included
  PrefixUse prefix_use_;        // since the last step
  std::uint64_t evictions_reported_ = 0;
};

}  // namespace penstock::scheduler
