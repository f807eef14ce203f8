// Runs plans on a backend: applies the control part to the slots, builds the ragged batch, lets the
// backend compute it, picks the next tokens on rank 0 and tells the other ranks.
//
// What concerns one sequence alone (a row of NaN logits) ends that sequence with kError. Any other
// error ends the group; the communicator is aborted, so that no rank waits for this one.
//
// Threading: the model thread. With world > 1 every rank executes the same plans.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/step_plan.h"
#include "common/plan/step_result.h"
#include "common/time.h"
#include "shard/backend/backend.h"
#include "shard/backend/token_picker.h"
#include "shard/executor/cell_rows.h"
#include "shard/executor/slot_table.h"
#include "shard/executor/step_batch.h"
#include "shard/parallel/communicator.h"
#include "shard/sampling/grammar_masks.h"
#include "shard/sampling/sampler.h"
#include "shard/sampling/token_history.h"
#include "shard/sampling/watermark.h"

namespace penstock::shard {

struct ExecutorOptions {
  std::uint32_t slots = 0;
  std::uint32_t vocabulary = 0;
  std::vector<TokenId> eos_token_ids;
  std::uint32_t max_logit_rows = 64;  // as the backend was prepared
  bool padded = false;                // KV layout; the backend has cells
  GrammarCache* grammars = nullptr;   // of rank 0, outlives the executor; null: none are offered
  bool late_masks = false;            // as in GroupLimits
  WatermarkSettings watermark;
  TokenPicker* picker = nullptr;  // the backend, where it is one and this rank is the only one
};

// Picks that are no token: rank 0 found none (NaN and the like), or there is none, be it not yet.
inline constexpr TokenId kFailedPick = -1;
inline constexpr TokenId kNoPick = -2;

// How long a step waits for masks that are not ready, all of its rows together: the sequence has to
// wait for a whole step otherwise.
inline constexpr std::chrono::milliseconds kMaskPatience{1};

class ModelExecutor {
 public:
  // Both outlive the executor. The backend has its cache.
  ModelExecutor(ExecutorOptions options, Backend& backend, Communicator& communicator);

  // Every step that was begun has been collected.
  absl::StatusOr<StepResult> Execute(const StepPlan& plan);

  // Begins the step on the device without waiting for it (run_ahead.cc), if all of it can be
  // computed there: then its result is the next but those begun before that Collect gives, and
  // `ready` is called, on any thread, when Collect would not wait. False: nothing was computed, and
  // the plan is to be executed once the steps begun before have been collected. At most
  // kMostStepsAhead are begun and not collected.
  absl::StatusOr<bool> Begin(const StepPlan& plan, std::function<void()> ready);
  absl::StatusOr<StepResult> Collect();

  void Reset();

 private:
  absl::Status Run(const StepPlan& plan, StepResult& result);
  absl::Status ApplyControl(const StepPlan& plan);
  void StartHistory(const SequenceStart& start);
  void RebuildHistory(SlotId slot);
  void Draft(const StepPlan& plan);

  // Rank 0 reads logits and picks; all ranks take part in gathering them.
  absl::Status ReadLogits(StepResult& result);
  absl::Status PickOnHost(StepResult& result);
  // `draft`: how many the row stands behind.
  void PickToken(const StepWork& work, std::uint32_t draft, std::span<float> logits,
                 SequenceResult& result);
  void TakeSampled(absl::StatusOr<SampledToken> sampled, TokenId& pick, SequenceResult& result);

  // Rows that depend on nothing that is found in this step are looked at side by side, on the
  // backend's threads (row_picks.cc).
  struct RowPick {
    std::uint32_t row = 0;  // of those with logits
    std::span<float> logits;
    std::optional<SampleRequest> request;  // none: the prompt goes on with `next`
    TokenId next = 0;
    absl::StatusOr<SampledToken> sampled = SampledToken{};
  };
  void PickRows(std::uint32_t first, std::uint32_t count, float* logits);
  void AddRowPick(std::size_t index, std::uint32_t row, std::span<float> logits);
  void TakeRowPick(const StepWork& work, RowPick& pick, SequenceResult& result);
  bool PicksAlone(const StepWork& work) const;
  SampleRequest RequestOfRow(std::size_t index);

  // Rows under a grammar (grammar_picks.cc): one whose mask is not ready keeps nobody waiting; its
  // logits are kept, and the pick is made in a later step.
  void StartGrammar(const SequenceStart& start);
  void EndGrammar(SlotId slot);
  void AllowByGrammar(const Sequence& sequence, SampleRequest& request);
  bool PutOff(const StepWork& work, std::span<const float> logits);
  void PickOwed(StepResult& result);
  absl::Status Owe(Sequence& sequence, StepResult& result);

  // Steps of which the backend picks every token (device_picks.cc).
  bool CollectPickRequests();
  absl::Status PickOnDevice(StepResult& result);

  // Steps that run ahead (run_ahead.cc).
  struct AheadRow {
    SlotId slot;
    SequenceId sequence;
    std::uint32_t committed = 0;  // behind the step
    bool picks = false;
  };
  struct AheadStep {
    std::vector<AheadRow> rows;
    std::uint32_t picks = 0;
    Time begun;
  };
  bool NamesStepsAhead(const StepPlan& plan) const;
  absl::StatusOr<bool> TryBegin(const StepPlan& plan, std::function<void()> ready);
  AheadStep CommitAhead();
  absl::Status CollectInto(StepResult& result);
  void DropStepsAhead();

  // Contrastive search (contrastive_steps.cc): rank 0 chooses among the rows of each candidate
  // segment, every rank commits the winners.
  absl::Status CommitWinners(StepResult& result);
  absl::Status ChooseWinners();
  void TakeWinner(std::int32_t winner, SequenceResult& result);
  // Rank 0: candidates for the position behind the row, into picks_.
  void FindCandidates(const StepWork& work, std::span<float> logits, SequenceResult& result);
  absl::Status TakeCandidates(std::span<const TokenId> picks, SequenceResult& result);

  // picks_ of rank 0 on every rank, and into sequences and results of those that have not picked
  // themselves.
  absl::Status SharePicks(StepResult& result);
  absl::Status TakePicks(std::span<const TokenId> picks, SequenceResult& result);
  absl::Status TakePicked(const PickedToken& pick, SequenceResult& result);
  void TakeToken(TokenId token, SequenceResult& result);
  void FinishDrafts(StepResult& result);
  absl::Status CheckPick(TokenId pick) const;
  void Accept(TokenId token, SequenceResult& result);
  void Fail(SequenceResult& result);
  SampleRequest RequestFor(const Sequence& sequence);

  const ExecutorOptions options_;
  Backend& backend_;
  Communicator& communicator_;
  SlotTable slots_;
  std::vector<std::optional<TokenHistory>> histories_;  // by slot, where penalties need one
  std::optional<GrammarMasks> grammars_;                // on rank 0
  std::vector<std::vector<float>> kept_;  // by slot: logits of a row that owes its pick
  std::vector<CandidateSet> candidates_;  // by slot, of contrastive search; on rank 0
  CellRows cell_rows_;
  StepBatch batch_;
  std::vector<Sampler> samplers_;  // by thread of the backend
  std::deque<AheadStep> ahead_;    // begun, not collected
  bool control_applied_ = false;   // of the next plan, by a Begin that began nothing
  Time last_collected_{};

  // Of the present step.
  std::vector<TokenId> masked_;
  std::vector<SampleRequest> requests_;            // of PickOnDevice
  std::vector<std::vector<TokenId>> masked_rows_;  // by index into work()
  std::vector<RowPick> row_picks_;                 // of rows read together, ascending
  std::vector<TokenId> picks_;                     // StepWork::picks per segment, in order
  std::vector<PickedToken> picked_;                // of the device
  std::vector<std::int32_t> winners_;              // of candidate segments, in order
  std::vector<CandidateChoice> choices_;
  std::vector<float> similarities_;
  Duration logits_time_{0};
  Time patience_ends_{};  // for masks that are not ready
};

}  // namespace penstock::shard
