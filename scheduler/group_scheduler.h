// The scheduler of one formed replica group: keeps up to pipeline_depth plans in flight, takes
// their results, and knows for every sequence what may still come back.
//
// A step is made in three calls, so that admission (one queue for all groups) stays outside:
//   BeginStep            decodes of everybody, then chunks of the prompts already started
//   CheckNow / Admit     newcomers, as many as the budgets allow
//   FinishStep           the plan, if there is anything to do
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "scheduler/admission/admission_policy.h"
#include "scheduler/admission/join_gate.h"
#include "scheduler/admission/output_lengths.h"
#include "scheduler/admission/static_batch.h"
#include "scheduler/config.h"
#include "scheduler/cost/cost_model.h"
#include "scheduler/input.h"
#include "scheduler/kv/prefix_sharing.h"
#include "scheduler/output.h"
#include "scheduler/scheduler.h"
#include "scheduler/step/cell_bound.h"
#include "scheduler/step/decode_groups.h"
#include "scheduler/step/growth.h"
#include "scheduler/step/sequence_table.h"
#include "scheduler/step/step_composer.h"

namespace penstock::scheduler {

// Rows of decodes, drafts included, that a step may have before drafts cost more than they bring:
// up to about so many a step is bound by reading the weights, and a further row is nearly free
// (docs/decisions/0025).
constexpr std::uint32_t kVerifiedRows = 16;

class GroupScheduler {
 public:
  // `lengths` must outlive the group; it learns from what ends here.
  GroupScheduler(const Config& config, const GroupUp& up, OutputLengths& lengths);

  GroupId id() const { return id_; }
  Epoch epoch() const { return epoch_; }
  std::uint32_t running() const { return table_.running(); }
  // The running request admitted first: who holds what others wait for.
  std::optional<RequestId> OldestRunning() const;

  // Why the request can never run here.
  std::optional<Refusal> WhyNeverFits(const Arrival& arrival) const;
  // What is short for admitting it now, other than the token budget of the step being made.
  std::optional<Shortage> Check(const Work& work) const;

  // The batch being gathered may take a request from behind one that it cannot take.
  bool Selective() const { return batch_.Selective(table_.running()); }

  // How many newcomers must join together in the step being made; below 2 nobody is held up.
  std::uint32_t LeastToJoin() const { return gate_.Least(table_.running()); }
  // What newcomers that are tried one after the other find.
  struct Trial {
    std::uint64_t prefill_left = 0;
    std::uint32_t joined = 0;  // with what they would reserve
    std::uint32_t rows = 0;
    std::uint32_t blocks = 0;
    std::uint64_t tokens = 0;
    std::vector<std::uint64_t> positions;  // the most of each, for the padded KV layout
  };
  Trial BeginTrial() const;
  // Whether it fits beside those that joined the trial before.
  bool Join(Trial& trial, const Work& work) const;

  std::uint32_t plans_in_flight() const { return static_cast<std::uint32_t>(in_flight_.size()); }
  bool CanPlan() const { return in_flight_.size() < config_.pipeline_depth; }
  void BeginStep(Time now, Outputs& out);
  // Token budget of the step being made.
  std::optional<Shortage> CheckStep(const Work& work) const;
  // Tokens of the request's prompt that the cache has.
  std::uint32_t CachedTokens(const Work& work) const {
    const PrefixMatch match = sharing_.Match(work, NextStep());
    return match.blocks * capacity_.block_size + match.tail_tokens;
  }
  // Another request is about to compute what this one needs, too (prefix_sharing.h).
  std::optional<PrefixSharing::Join> CheckJoin(const Work& work) const;
  // All Checks must have passed.
  void Admit(Work work, SequenceId id, Time now, Outputs& out);
  // Puts out the plan. False when there is nothing to compute and nothing that must be said, which
  // are ends alone only if `ends_alone`.
  bool FinishStep(std::uint32_t waiting, bool ends_alone, Outputs& out);

  // A result of any other step than the oldest in flight is ignored.
  void OnResult(const StepResult& result, Time now, Outputs& out);
  // Requests that were preempted here and wait for admission again; asked after BeginStep, OnResult
  // and Lose.
  std::vector<Work> TakePreempted() { return std::exchange(preempted_, {}); }
  // False when the request does not run here.
  bool Cancel(RequestId request, Time now, Outputs& out);
  void Forget(const ForgetPrefixes& what) { table_.cache().Forget(what.tenant, what.made_by); }
  // What became of kept prefixes since the last call.
  void TellPins(Outputs& out);
  bool FinishAt(RequestId request, std::uint32_t token_count, Time now, Outputs& out);
  // Ends every running request with an error; preempted ones can go on elsewhere. The object must
  // not be used afterwards.
  void Lose(const std::string& reason, Time now, Outputs& out);

  void AddTo(Snapshot& sum) const;

 private:
  // What a plan in flight may yield for one sequence.
  struct Named {
    SequenceId sequence;
    SlotId slot;
    std::uint32_t most_tokens = 0;
  };
  struct InFlight {
    StepId step;
    Duration predicted{0};
    std::vector<Named> named;
  };
  // The plan being made. Its lists keep their room from step to step.
  struct Draft {
    void Restart(StepBudget budget, StepTimeLimit limit) {
      composer.Restart(budget, limit);
      plan.Clear();
      requests.clear();
      named.clear();
      decodes.clear();
      joined = false;
      resplit = false;
    }

    StepComposer composer;
    StepPlan plan;
    std::vector<RequestId> requests;  // of plan.starts
    std::vector<Named> named;
    std::vector<DecodeRow> decodes;  // where they are split by length
    bool joined = false;             // somebody was admitted
    bool resplit = false;            // another partition of the decodes was taken
  };

  StepId NextStep() const { return StepId(last_step_.value() + 1); }
  GroupState StateFor(const Work& work) const;
  std::uint32_t DecodeRows() const;  // of all running, when every one decodes without drafts
  // Of each decode that may have drafts, in a step of so many tokens.
  std::uint32_t MostRows(std::uint32_t step_tokens) const;
  Decision MakeDecision(Time at, const Sequence& sequence, DecisionKind kind) const;
  bool FitsOneStep(std::uint64_t prompt) const;
  void MakeRoom(Time now, Outputs& out);
  void Preempt(Sequence& victim, std::optional<RequestId> taker, Time now, Outputs& out);
  void KeepFree();
  bool Secure(Sequence& sequence, Time now, Outputs& out);
  void AddDecode(Sequence& sequence, Time now, Outputs& out);
  void AddChunk(Sequence& sequence, Time now, Outputs& out);
  void Start(Sequence& sequence, Outputs& out);
  void CopyTail(Sequence& sequence);
  void AddRow(Sequence& sequence, std::uint64_t positions, std::uint32_t rows);
  void KeepRow(Sequence& sequence);
  std::uint64_t CellsNeeded(const Work& work, const std::vector<std::uint64_t>& others) const;
  void SplitDecodes(Time now, Outputs& out);
  void GroupPrompts(Draft& draft) const;
  void Name(Sequence& sequence, std::uint32_t most_tokens);
  void TakeResult(const SequenceResult& result, Time now, Outputs& out);
  void ReportTokens(Sequence& sequence, const SequenceResult& result, std::uint32_t count,
                    Outputs& out);
  void Finish(Sequence& sequence, FinishReason reason, std::uint32_t tokens, Time now,
              Outputs& out);
  void Fail(Sequence& sequence, FailureKind kind, std::string message, Time now, Outputs& out);
  void Retire(Sequence& sequence, Time now, Outputs& out);
  void ReclaimIfUnnamed(Sequence& sequence, Time now, Outputs& out);

  const Config config_;
  const GroupId id_;
  const Epoch epoch_;
  const GroupCapacity capacity_;
  OutputLengths& lengths_;
  const std::unique_ptr<AdmissionPolicy> admission_;
  const Growth growth_;
  SequenceTable table_;
  PrefixSharing sharing_;
  CostModel cost_;
  std::vector<Work> preempted_;
  DecodeGroups decode_groups_;
  mutable CellBound cell_bound_;
  JoinGate gate_;
  StepId last_step_;
  std::vector<InFlight> in_flight_;  // the oldest first; few
  std::vector<Named> spare_named_;   // room of the last that came back
  std::optional<Draft> draft_;
  StaticBatch batch_;
  std::uint32_t most_rows_ = 1;  // MostRows of the step being made
  Lack lacking_;        // of decodes whose growth is not secured yet, in the step being made
  bool waits_ = false;  // one of them waits for a result, so those behind it do as well
  std::uint32_t kept_free_ = 0;
  PrefixUse prefix_use_;  // since the step before
  std::uint64_t evictions_told_ = 0;
};

}  // namespace penstock::scheduler
