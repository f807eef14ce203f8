// The part of GroupScheduler that lets sequences grow beyond their reservations (growth.h).
#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/admission/optimistic_admission.h"
#include "scheduler/check.h"
#include "scheduler/group_scheduler.h"

namespace penstock::scheduler {

// Preempts until what is free, or comes back with the results in flight, is enough for everybody's
// next rows.
void GroupScheduler::MakeRoom(Time now, Outputs& out) {
  lacking_ = {};
  waits_ = false;
  if (config_.admission == Admission::kGuaranteed) return;
  std::optional<RequestId> taker;
  for (const auto& [id, sequence] : table_.all()) {
    const Lack lack = growth_.OfNextDecode(sequence, most_rows_);
    if (!taker && !lack.none()) taker = sequence.request.request;
    lacking_ += lack;
  }
  while (!growth_.Covered(lacking_, table_, true)) {
    Sequence* victim = growth_.Victim(table_, *admission_);
    PENSTOCK_CHECK(victim != nullptr, "the worst cases of what cannot be preempted fit the pool");
    const Lack spared = growth_.OfNextDecode(*victim, most_rows_);
    Preempt(*victim, taker, now, out);  // says what was lacking
    lacking_ -= spared;
  }
}

std::uint32_t GroupScheduler::DecodeRows() const {
  const SequenceTable::Contrastive& contrastive = table_.contrastive();
  return table_.running() - contrastive.sequences + contrastive.candidates;
}

// Every sequence has one row; what is left of kVerifiedRows and of the step's budget is for drafts,
// the same share for everybody.
std::uint32_t GroupScheduler::MostRows(std::uint32_t step_tokens) const {
  const SequenceTable::Contrastive& contrastive = table_.contrastive();
  const std::uint32_t plain = table_.running() - contrastive.sequences;
  if (config_.max_decode_rows == 1 || plain == 0) return 1;
  const std::uint32_t room = std::min(kVerifiedRows, step_tokens);
  const std::uint32_t share = (room - std::min(room, contrastive.candidates)) / plain;
  return std::clamp(share, 1u, config_.max_decode_rows);
}

void GroupScheduler::KeepFree() {
  kept_free_ = 0;
  if (config_.admission == Admission::kGuaranteed) return;
  for (const auto& [id, sequence] : table_.all()) {
    kept_free_ += static_cast<std::uint32_t>(growth_.OfPipeline(sequence));
  }
}

void GroupScheduler::Preempt(Sequence& victim, std::optional<RequestId> taker, Time now,
                             Outputs& out) {
  Decision decision = MakeDecision(now, victim, DecisionKind::kPreempted);
  const BlockPool& pool = table_.pool();
  decision.short_of = lacking_.blocks > pool.available() ? Budget::kBlocks : Budget::kTotalTokens;
  const bool blocks = decision.short_of == Budget::kBlocks;
  decision.needed = blocks ? lacking_.blocks : lacking_.tokens;
  decision.available =
      blocks ? pool.available() : config_.max_batch_total_tokens - table_.reserved_tokens();
  if (taker != victim.request.request) decision.behind = taker;
  decision.step = StepId(last_step_.value() + 1);
  out.decisions.push_back(decision);
  table_.Preempt(victim);
  PENSTOCK_CHECK(victim.preemptions <= OptimisticAdmission::kMaxPreemptions,
                 "at most 3 preemptions");
  ReclaimIfUnnamed(victim, now, out);
}

// Lets the sequence's reservation grow with what it has become, if it lacks anything for its next
// rows. False: it waits for a result.
bool GroupScheduler::Secure(Sequence& sequence, Time now, Outputs& out) {
  if (lacking_.none()) return true;  // nobody lacks anything, as in most steps
  const Lack lack = growth_.OfNextDecode(sequence, most_rows_);
  if (lack.none()) return true;
  if (waits_ || !growth_.Covered(lack, table_, false)) {
    waits_ = true;
    if (std::exchange(sequence.waits_for_room, true)) return false;
    Decision decision = MakeDecision(now, sequence, DecisionKind::kDeferred);
    decision.short_of = lack.blocks > 0 ? Budget::kBlocks : Budget::kTotalTokens;
    decision.needed = lack.blocks > 0 ? lack.blocks : lack.tokens;
    decision.available = lack.blocks > 0 ? table_.pool().available() : 0;
    out.decisions.push_back(decision);
    return false;
  }
  sequence.waits_for_room = false;
  const Lack more = growth_.Stretch(sequence, lack, admission_->TokensToReserve(sequence));
  Lack all = lacking_;
  all -= lack;
  all += more;
  const Lack& granted = growth_.Covered(all, table_, false) ? more : lack;
  lacking_ -= lack;
  table_.Extend(sequence, static_cast<std::uint32_t>(granted.blocks), granted.tokens);
  return true;
}

}  // namespace penstock::scheduler
