// The segments of a plan as the ragged batch that a backend computes. Segments of slots that have
// finished are left out. One object serves all steps, so its memory is reused.
//
// Threading: the model thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/step_plan.h"
#include "shard/backend/backend.h"
#include "shard/executor/adapter_table.h"
#include "shard/executor/slot_table.h"

namespace penstock::shard {

// One segment of the batch and what its rows must produce.
struct StepWork {
  Segment segment;
  std::uint32_t rows = 0;
  std::uint32_t first_logit = 0;  // index into RaggedBatch::logit_rows
  std::uint32_t logit_count = 0;
  std::uint32_t commits = 0;      // positions that are surely committed; one for all candidates
  std::uint32_t drafts = 0;       // rows after those, kept as far as their tokens are right
  std::uint32_t tokens = 0;       // most tokens selected from the rows; 0: none is sampled
  std::uint32_t first_token = 0;  // index of the first among the tokens of all work
  std::uint32_t ragged = 0;       // index into RaggedBatch::segments, unless `pending`
  bool forced = false;            // the drafts are forced tokens: only the last row has logits
  bool candidates = false;        // a decode of contrastive search
  bool pending = false;           // no rows: the token is selected from kept logits

  bool samples() const { return tokens > 0; }
  // Whether a token that may come next is sampled from this logit row of the work.
  bool SamplesAt(std::uint32_t row) const { return samples() && row + 1 + drafts >= logit_count; }
};

class StepBatch {
 public:
  // The control part of the plan is applied to `slots`, and to `adapters` unless that is null.
  // batch() refers to the block tables and adapters there.
  void Build(const StepPlan& plan, const SlotTable& slots, const AdapterTable* adapters = nullptr);

  RaggedBatch batch() const { return {tokens_, segments_, logit_rows_}; }
  const std::vector<StepWork>& work() const { return work_; }  // in the order of segments
  // For each row the index, among the tokens of the step before, of the row's token; -1 if the
  // token is in the batch.
  const std::vector<std::int32_t>& newest_samples() const { return newest_samples_; }
  std::uint32_t token_count() const { return token_count_; }
  std::uint32_t candidate_segments() const { return candidate_segments_; }

 private:
  void Add(const Segment& segment, const RankSequence& sequence);
  void AddTokens(const StepWork& work, const RankSequence& sequence);

  std::vector<TokenId> tokens_;
  std::vector<RaggedSegment> segments_;
  std::vector<std::uint32_t> logit_rows_;
  std::vector<StepWork> work_;
  std::vector<std::int32_t> newest_samples_;
  std::uint32_t token_count_ = 0;  // of all work
  std::uint32_t candidate_segments_ = 0;
};

}  // namespace penstock::shard
