// Contrastive search (Su et al., "A Contrastive Framework for Neural Text Generation", NeurIPS
// 2022) by the rule of HF transformers; exact rules: docs/api/sampling.md. A decode computes one
// row for each candidate token. Rank 0 chooses one of them; all ranks commit its K/V and hidden
// state. Its logits then give the candidates of the next step, so each token costs one forward
// pass.
//
// The candidates follow from the tokens of the sequence, so a restarted sequence finds the same.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/executor/executor_options.h"
#include "shard/executor/sampling_state.h"
#include "shard/executor/slot_table.h"
#include "shard/executor/step_batch.h"
#include "shard/parallel/communicator.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard {

class ContrastiveSearch {
 public:
  // All but `options` outlive this object.
  ContrastiveSearch(const ExecutorOptions& options, Backend& backend, Communicator& communicator,
                    SlotTable& slots, SamplingState& sampling);

  // After Backend::Execute: chooses one candidate of each candidate segment and commits it.
  // Collective.
  absl::Status CommitWinners(const StepBatch& batch, StepResult& result);

  // Rank 0: finds the candidates for the position after the row and writes them to `tokens`.
  void FindCandidates(std::span<float> logits, std::span<TokenId> tokens, SequenceResult& result);

  // All ranks: the candidates that rank 0 found become those of the sequence.
  absl::Status TakeCandidates(std::span<const TokenId> tokens, SequenceResult& result);

 private:
  absl::Status ChooseWinners(const StepBatch& batch);
  void AppendWinner(std::int32_t winner, SequenceResult& result);

  Backend& backend_;
  Communicator& communicator_;
  SlotTable& slots_;
  SamplingState& sampling_;
  Sampler sampler_;
  std::vector<CandidateSet> candidates_;  // by slot; rank 0 only

  // For the current step.
  std::vector<std::int32_t> winners_;  // one for each candidate segment, in order
  std::vector<CandidateChoice> choices_;
  std::vector<float> similarities_;
  std::vector<TokenId> masked_;
};

}  // namespace penstock::shard
