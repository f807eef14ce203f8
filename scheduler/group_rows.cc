// The part of GroupScheduler that splits decodes by length and, in the padded KV layout, keeps the
// rows of dense sub-batches (decode_groups.h, cell_bound.h, docs/decisions/0014).
#include "scheduler/check.h"
#include "scheduler/group_scheduler.h"

namespace penstock::scheduler {

// The sequence's decode in the plan being made: the newest segment of the draft.
void GroupScheduler::AddRow(Sequence& sequence, std::uint64_t positions, std::uint32_t rows) {
  if (!capacity_.padded_attention && capacity_.cells == 0) return;
  const auto segment = static_cast<std::uint32_t>(draft_->composer.segments().size() - 1);
  draft_->decodes.push_back({sequence.id, sequence.slot, positions, rows, segment});
  if (capacity_.cells == 0 || sequence.joined) return;
  sequence.joined = NextStep();
  sequence.blocks.Retire(table_.cache());
}

// A row that computes nothing in this step keeps its cells.
void GroupScheduler::KeepRow(Sequence& sequence) {
  if (!sequence.joined || sequence.retiring) return;
  std::vector<DecodeRow>& rows = draft_->decodes;
  if (!rows.empty() && rows.back().sequence == sequence.id) return;
  // Under a grammar a row may have been computed whose token is yet to come (late_masks).
  const std::uint32_t next = sequence.request.grammar.empty() ? 0 : sequence.NextDecodeRows(1);
  rows.push_back({sequence.id, sequence.slot,
                  sequence.PositionsAfter(sequence.TokensOfDecode(next)), 1,
                  DecodeRow::kNoSegment});
}

// `others`: the most positions of newcomers that are tried beside `work`.
std::uint64_t GroupScheduler::CellsNeeded(const Work& work,
                                          const std::vector<std::uint64_t>& others) const {
  if (capacity_.cells == 0) return 0;
  cell_bound_.Clear();
  for (const auto& [id, sequence] : table_.all()) {
    if (sequence.retiring) continue;
    cell_bound_.Add(AdmissionPolicy::WorstCaseTokens(sequence.request));
  }
  for (const std::uint64_t positions : others) cell_bound_.Add(positions);
  cell_bound_.Add(AdmissionPolicy::WorstCaseTokens(work.request));
  return cell_bound_.LeastCells();
}

void GroupScheduler::SplitDecodes(Time now, Outputs& out) {
  const std::vector<DecodeRow>& rows = draft_->decodes;
  if (rows.empty()) return;
  const bool taken = decode_groups_.Update(rows, cost_.LaunchCells());
  PENSTOCK_CHECK(capacity_.cells == 0 || decode_groups_.Cells() <= capacity_.cells,
                 "admission counted what the best partition of the longest rows takes");
  draft_->resplit = taken;
  decode_groups_.AddGroups(rows, draft_->plan.groups);
  for (std::size_t i = 0; taken && i < rows.size(); ++i) {
    if (!decode_groups_.Moved(i)) continue;
    Decision decision = MakeDecision(now, *table_.Find(rows[i].sequence), DecisionKind::kSplit);
    decision.needed = decode_groups_.parts();
    decision.available = decode_groups_.PartOf(i);
    decision.step = StepId(last_step_.value() + 1);
    out.decisions.push_back(decision);
  }
}

// A chunk is a rectangle of its own, so it needs no company.
void GroupScheduler::GroupPrompts(Draft& draft) const {
  if (!capacity_.padded_attention && capacity_.cells == 0) return;
  for (std::uint32_t i = 0; i < draft.plan.segments.size(); ++i) {
    if (draft.plan.segments[i].kind == Segment::Kind::kPrompt) {
      draft.plan.groups.push_back({{i}, {}, 0});
    }
  }
}

}  // namespace penstock::scheduler
