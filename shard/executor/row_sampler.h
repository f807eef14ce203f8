// Samples rows that do not depend on each other, on all threads of the backend. Sampling one row
// takes about as long as a small layer, so the threads share the rows.
//
// A row is independent if nothing else that this step finds decides its token: the sequence has no
// draft, no grammar and no contrastive search. The rows of a prompt whose log-probabilities are
// requested are independent too; no token is sampled from them.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/executor/sampling_state.h"
#include "shard/executor/slot_table.h"
#include "shard/executor/step_batch.h"
#include "shard/sampling/sampler.h"

namespace penstock::shard {

class RowSampler {
 public:
  struct Row {
    std::uint32_t index = 0;  // among the logit rows of the batch
    std::span<float> logits;
    std::optional<SampleRequest> request;  // none: a report on `next` is wanted
    TokenId next = 0;
    std::optional<std::uint32_t> prompt_top_n = {};
    Sampler::PromptReport report = {};
    absl::StatusOr<SampledToken> sampled = SampledToken{};
  };

  // All outlive this object.
  RowSampler(Backend& backend, const SlotTable& slots, SamplingState& sampling,
             const GrammarState& grammars);

  // The independent ones of `count` logit rows from `first`, sampled, in ascending order. `logits`
  // is [count, vocabulary] and is overwritten. Valid until the next call.
  std::span<Row> Sample(const StepBatch& batch, std::uint32_t first, std::uint32_t count,
                        std::span<float> logits);

  // Whether the one token of this work is sampled from an independent row.
  bool IsIndependent(const StepWork& work) const;

 private:
  void Add(const StepWork& work, std::uint32_t index, std::span<float> logits);

  Backend& backend_;
  const SlotTable& slots_;
  SamplingState& sampling_;
  const GrammarState& grammars_;
  std::vector<Sampler> samplers_;  // by thread of the backend
  std::vector<Row> rows_;
  std::vector<std::vector<TokenId>> masked_;  // by index into rows_
};

}  // namespace penstock::shard
