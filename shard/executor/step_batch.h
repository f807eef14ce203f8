// A plan's segments as the ragged batch that a backend computes. Segments of slots that have
// finished are left out. One object is reused for all steps, so its memory is too.
//
// One owner: the model thread.
#pragma once

#include <cstdint>
#include <vector>

#include "common/plan/step_plan.h"
#include "shard/backend/backend.h"
#include "shard/executor/slot_table.h"

namespace penstock::shard {

// One unfinished segment and what is wanted from its rows.
struct StepWork {
  Segment segment;
  std::uint32_t rows = 0;
  std::uint32_t first_logit = 0;  // index into RaggedBatch::logit_rows
  std::uint32_t logit_count = 0;
  std::uint32_t commits = 0;     // positions, for certain; one for all rows of candidates
  std::uint32_t drafts = 0;      // rows behind them that are kept as far as their tokens are right
  std::uint32_t picks = 0;       // ids that rank 0 tells the others; 0: the rows tell no next token
  std::uint32_t first_pick = 0;  // of those, among the picks of all work
  std::uint32_t ragged = 0;      // index into RaggedBatch::segments; none where there are no rows
  bool candidates = false;       // a decode of contrastive search
  bool owed = false;             // no rows: it picks from the row that a step before has computed

  bool samples() const { return picks > 0; }
  // Whether the row (of those with logits) tells a token that may follow it.
  bool SamplesAt(std::uint32_t row) const { return samples() && row + 1 + drafts >= logit_count; }
};

class StepBatch {
 public:
  // `slots` has the plan applied; its block tables must stay as they are while batch() is used.
  void Build(const StepPlan& plan, const SlotTable& slots);

  RaggedBatch batch() const { return {tokens_, segments_, logit_rows_}; }
  const std::vector<StepWork>& work() const { return work_; }  // in the order of segments
  // Of each row the pick of the step before that is its token; -1: it stands in the batch.
  const std::vector<std::int32_t>& newest() const { return newest_; }
  std::uint32_t pick_count() const { return pick_count_; }
  std::uint32_t candidate_segments() const { return candidate_segments_; }

 private:
  void Add(const Segment& segment, const Sequence& sequence);
  void AddTokens(const StepWork& work, const Sequence& sequence);

  std::vector<TokenId> tokens_;
  std::vector<RaggedSegment> segments_;
  std::vector<std::uint32_t> logit_rows_;
  std::vector<StepWork> work_;
  std::vector<std::int32_t> newest_;
  std::uint32_t pick_count_ = 0;  // of all work
  std::uint32_t candidate_segments_ = 0;
};

}  // namespace penstock::shard
