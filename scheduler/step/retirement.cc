#include "scheduler/step/retirement.h"

#include "scheduler/decide.h"

namespace penstock::scheduler {

void Retirement::Finish(Sequence& sequence, FinishReason reason, std::uint32_t tokens, Time now,
                        Outputs& out) {
  out.AddEvent(sequence.request.request, Finished{reason, tokens});
  if (reason != FinishReason::kCancelled) lengths_.Learn(sequence.request, tokens);
  Retire(sequence, now, out);
}

void Retirement::Fail(Sequence& sequence, FailureKind kind, std::string message, Time now,
                      Outputs& out) {
  out.AddEvent(sequence.request.request, Failed{kind, std::move(message)});
  Retire(sequence, now, out);
}

void Retirement::Retire(Sequence& sequence, Time now, Outputs& out) {
  table_.Retire(sequence);
  Decision& decision = Decide(group_, sequence, DecisionKind::kFinished, now, out);
  if (sequence.started) decision.step = sequence.last_plan;
}

void Retirement::ReclaimIfUnreferenced(Sequence& sequence, Time now, Outputs& out) {
  if (sequence.plans_in_flight > 0) return;
  Decision& decision = Decide(group_, sequence, DecisionKind::kRetired, now, out);
  if (sequence.started) decision.step = sequence.last_plan;
  decision.available = sequence.blocks.blocks().size() + sequence.window.held();
  if (sequence.preempted) {
    preempted_.push_back(table_.Requeue(sequence));
  } else {
    table_.Reclaim(sequence);
  }
}

void Retirement::RequeueAll(const std::string& reason, bool in_order, Time now, Outputs& out) {
  for (auto& [id, sequence] : table_.all()) {
    if (sequence.retiring && !sequence.preempted) continue;
    if (sequence.Suspect() && !in_order) {
      Fail(sequence, FailureKind::kSuspect,
           "The replica group was lost " + std::to_string(sequence.losses + 1) +
               " times while it computed this request, the last time with no other request: " +
               reason,
           now, out);
      continue;
    }
    sequence.lost = true;
    sequence.yielded = false;
    if (!in_order) ++sequence.losses;
    Decide(group_, sequence, DecisionKind::kLost, now, out).needed = sequence.losses;
    preempted_.push_back(std::move(static_cast<Work&>(sequence)));
  }
}

void Retirement::FailAll(const std::string& reason, Time now, Outputs& out) {
  for (auto& [id, sequence] : table_.all()) {
    if (sequence.preempted) preempted_.push_back(std::move(static_cast<Work&>(sequence)));
    if (!sequence.retiring) Fail(sequence, FailureKind::kGroupLost, reason, now, out);
  }
}

}  // namespace penstock::scheduler
