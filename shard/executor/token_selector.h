// Token selection of a step: rank 0 reads the logits and selects the tokens, on the host or on the
// device, and tells the other ranks.
//
// A sequence whose logits hold a NaN, or whose grammar allows no token, ends with kError. The other
// sequences of the step are not affected.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "common/time.h"
#include "shard/backend/backend.h"
#include "shard/backend/device_sampler.h"
#include "shard/executor/contrastive_search.h"
#include "shard/executor/executor_options.h"
#include "shard/executor/grammar_state.h"
#include "shard/executor/row_sampler.h"
#include "shard/executor/sampling_state.h"
#include "shard/executor/slot_table.h"
#include "shard/executor/step_batch.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard {

class TokenSelector {
 public:
  // All outlive this object.
  TokenSelector(const ExecutorOptions& options, Backend& backend, Communicator& communicator,
                SlotTable& slots, GrammarState& grammars, SamplingState& sampling,
                ContrastiveSearch& search);

  // Selects the tokens of a computed step and shares them among the ranks. `result` has an entry
  // for each StepWork of the batch. Collective.
  absl::Status Run(const StepBatch& batch, StepResult& result);

  // How long the last Run waited for logits.
  Duration logits_time() const { return logits_time_; }

  // Returns true if the device can select every token of this step; device_requests() then has one
  // request for each logit row, valid until the next call.
  bool FitsDevice(const StepBatch& batch);
  std::span<const SampleRequest> device_requests() const { return device_requests_; }

  // A token that the device or another rank selected.
  absl::Status Take(const DeviceToken& token, SequenceResult& result);

 private:
  absl::Status SelectOnDevice(const StepBatch& batch, StepResult& result);
  absl::Status SelectOnHost(const StepBatch& batch, StepResult& result);
  void SelectRows(const StepBatch& batch, std::uint32_t first, std::span<float> logits,
                  StepResult& result);
  void SelectRow(const StepWork& work, std::uint32_t row, std::span<float> logits,
                 SequenceResult& result);
  void SelectToken(const StepWork& work, std::uint32_t draft, std::span<float> logits,
                   SequenceResult& result);
  void SelectPending(const StepBatch& batch, StepResult& result);
  void TakeRow(const StepWork& work, RowSampler::Row& row, SequenceResult& result);
  void TakeSampled(absl::StatusOr<SampledToken> sampled, TokenId& token, SequenceResult& result);

  absl::Status Share(const StepBatch& batch, StepResult& result);
  absl::Status TakeShared(std::span<const TokenId> tokens, SequenceResult& result);

  std::span<TokenId> TokensOf(const StepWork& work) {
    return std::span(tokens_).subspan(work.first_token, work.tokens);
  }

  const ExecutorOptions& options_;
  Backend& backend_;
  Communicator& communicator_;
  SlotTable& slots_;
  GrammarState& grammars_;
  SamplingState& sampling_;
  ContrastiveSearch& search_;
  RowSampler rows_;
  Sampler sampler_;  // for rows that depend on each other

  // For the current step.
  std::vector<TokenId> tokens_;  // StepWork::tokens of the batch, in order
  std::vector<TokenId> masked_;
  std::vector<SampleRequest> device_requests_;
  std::vector<std::vector<TokenId>> device_masked_;  // by index into device_requests_
  std::vector<DeviceToken> device_tokens_;
  Duration logits_time_{0};
};

}  // namespace penstock::shard
