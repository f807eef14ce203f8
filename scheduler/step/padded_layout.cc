#include "scheduler/step/padded_layout.h"

#include <utility>

#include "common/check.h"
#include "scheduler/admission/admission_policy.h"
#include "scheduler/decide.h"

namespace penstock::scheduler {

PaddedLayout::PaddedLayout(const Config& config, const GroupUp& up, SequenceTable& table)
    : group_(up.group),
      capacity_(up.capacity),
      table_(table),
      bound_(config.max_splits),
      sub_batches_({config.split, config.max_splits, config.max_sparsity_ppm}, up.capacity.cells) {}

std::uint64_t PaddedLayout::CellsNeeded(const Work& work,
                                        const std::vector<std::uint64_t>& others) {
  if (!stores_rows()) return 0;
  bound_.Clear();
  for (const auto& [id, sequence] : table_.all()) {
    if (sequence.retiring) continue;
    bound_.Add(AdmissionPolicy::WorstCaseTokens(sequence.request));
  }
  for (const std::uint64_t positions : others) bound_.Add(positions);
  bound_.Add(AdmissionPolicy::WorstCaseTokens(work.request));
  return bound_.LeastCells();
}

void PaddedLayout::AddRow(Sequence& sequence, std::uint64_t positions, std::uint32_t query_rows,
                          const StepDraft& draft) {
  const auto segment = static_cast<std::uint32_t>(draft.composer().segments().size() - 1);
  rows_.push_back({sequence.id, sequence.slot, positions, query_rows, segment});
  if (!stores_rows() || sequence.padded_since) return;
  sequence.padded_since = draft.step();
  sequence.blocks.Retire(table_.cache());
}

void PaddedLayout::KeepStoredRow(const Sequence& sequence) {
  if (!sequence.padded_since || sequence.retiring) return;
  if (!rows_.empty() && rows_.back().sequence == sequence.id) return;
  // A step in flight may compute a row whose token depends on a late grammar mask.
  const std::uint32_t next = sequence.request.grammar.empty() ? 0 : sequence.NextDecodeRows(1);
  rows_.push_back({sequence.id, sequence.slot,
                   sequence.PositionsAfter(sequence.TokensOfDecode(next)), 1,
                   DecodeRow::kNoSegment});
}

void PaddedLayout::SplitDecodes(const CostModel& cost, StepDraft& draft, Time now, Outputs& out) {
  if (rows_.empty()) return;
  const bool resplit = sub_batches_.Update(rows_, cost.LaunchCells());
  resplit_ = resplit_ || resplit;
  PENSTOCK_CHECK(!stores_rows() || sub_batches_.Cells() <= capacity_.cells,
                 "admission counted the cells of the best partition");
  sub_batches_.AddGroups(rows_, draft.plan().groups);
  for (std::size_t i = 0; resplit && i < rows_.size(); ++i) {
    if (!sub_batches_.Moved(i)) continue;
    const Sequence& sequence = *table_.Find(rows_[i].sequence);
    Decision& decision = Decide(group_, sequence, DecisionKind::kSplit, now, out);
    decision.needed = sub_batches_.parts();
    decision.available = sub_batches_.PartOf(i);
    decision.step = draft.step();
  }
}

void PaddedLayout::AddPrompts(StepPlan& plan) const {
  if (!Splits()) return;
  for (std::uint32_t i = 0; i < plan.segments.size(); ++i) {
    if (plan.segments[i].kind == Segment::Kind::kPrompt) plan.groups.push_back({{i}, {}, 0});
  }
}

void PaddedLayout::Describe(StepInfo& info) {
  if (rows_.empty()) return;
  info.decode_parts = sub_batches_.parts();
  info.decode_cells = sub_batches_.Cells();
  info.decode_tokens = sub_batches_.Tokens();
  info.resplit = std::exchange(resplit_, false);
}

// The step that moved the sequence into a padded row was the last to read its blocks.
void PaddedLayout::OnResult(Sequence& sequence, StepId step) {
  if (sequence.padded_since == step) sequence.blocks.Reclaim(table_.cache(), sequence.id);
}

}  // namespace penstock::scheduler
