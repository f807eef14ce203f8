// Executes step plans on a backend. A step first applies the control part of the plan to the slots
// and builds the batch. The backend computes the batch. Then rank 0 selects the tokens and shares
// them with the other ranks.
//
// What concerns one sequence alone (for example a row of NaN logits) ends that sequence with
// kError. Any other error ends the group: the communicators are aborted, so that no rank waits for
// this one.
//
// Threading: the model thread. With several ranks every rank executes the same plans.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <functional>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "shard/backend/backend.h"
#include "shard/executor/contrastive_search.h"
#include "shard/executor/executor_options.h"
#include "shard/executor/grammar_state.h"
#include "shard/executor/padded_rows.h"
#include "shard/executor/sampling_state.h"
#include "shard/executor/slot_table.h"
#include "shard/executor/step_batch.h"
#include "shard/executor/steps_in_flight.h"
#include "shard/executor/token_selector.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard {

class ModelExecutor {
 public:
  // All outlive the executor. The cache of the backend is allocated. `communicator` joins the hosts
  // of the ranks, `device_communicator` their devices; the executor only aborts the latter.
  ModelExecutor(ExecutorOptions options, Backend& backend, Communicator& communicator,
                Communicator* device_communicator = nullptr);

  // No step is in flight.
  absl::StatusOr<StepResult> Execute(const StepPlan& plan);

  // Begins the step on the device without waiting for it, if the whole step can run ahead (see
  // StepsInFlight). Collect then gives the results of the steps in order. `ready` is called, on any
  // thread, when Collect would not wait for this step. False: nothing was computed; Execute must be
  // called with the same plan after all steps in flight are collected.
  absl::StatusOr<bool> Begin(const StepPlan& plan, std::function<void()> ready);
  absl::StatusOr<StepResult> Collect();

  // Ends all sequences and drops the steps in flight.
  void Reset();

 private:
  absl::Status Run(const StepPlan& plan, StepResult& result);
  absl::StatusOr<bool> TryBegin(const StepPlan& plan, std::function<void()> ready);
  absl::Status ApplyControl(const StepPlan& plan);
  absl::Status Draft(const StepPlan& plan);
  // Forced tokens as drafts, on all ranks alike.
  absl::Status DraftForced(const StepPlan& plan);
  void AddSequences(StepResult& result);
  absl::Status FinishDrafts(StepResult& result);
  absl::Status SaveStates(const StepPlan& plan);
  // Ends the sequences that start with an unknown adapter.
  void Refuse(const StepPlan& plan);
  void Abort();

  const ExecutorOptions options_;
  Backend& backend_;
  Communicator& communicator_;
  Communicator* const device_communicator_;
  SlotTable slots_;
  GrammarState grammars_;
  SamplingState sampling_;
  ContrastiveSearch search_;
  TokenSelector selector_;
  StepsInFlight in_flight_;
  PaddedRows padded_rows_;
  StepBatch batch_;
  std::vector<DraftsKept> kept_;         // of the current step
  std::vector<TokenId> forced_;          // the same: for each decode that may have some
  std::vector<SequenceResult> refused_;  // the same
  bool control_applied_ = false;         // of the next plan, by a Begin that returned false
};

}  // namespace penstock::shard
