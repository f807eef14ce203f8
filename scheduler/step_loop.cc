#include "scheduler/step_loop.h"

#include "scheduler/decide.h"

namespace penstock::scheduler {

void StepLoop::Run(Time now, Outputs& out) {
  now_ = now;
  for (const Reach reach : {Reach::kAll, Reach::kIdleFirst, Reach::kOwn}) {
    if (reach != Reach::kAll && (queue_.empty() || !groups_.AnyIdle())) break;
    reach_ = reach;
    groups_.MarkChanged();
    MakeSteps(out);
  }
}

void StepLoop::MakeSteps(Outputs& out) {
  bool progress = true;
  while (progress) {
    progress = false;
    for (auto& [id, group] : groups_.all()) progress = MakeStep(group, out) || progress;
  }
}

bool StepLoop::MakeStep(GroupScheduler& group, Outputs& out) {
  if (!group.CanPlan()) return false;
  if (group.StepChangesMemory()) groups_.MarkChanged();
  const auto fits = [&group](const WaitingRequest& waiting) { return group.Fits(waiting); };
  group.BeginStep(queue_.Due(fits), now_, out);
  queue_.Requeue(group.TakePreempted(), now_, out);
  if (!TooFewNewcomers(group, out)) {
    while (AdmitNext(group, out)) {
    }
  }
  // A group that may still get work must not become busy with a plan that only ends sequences.
  const bool ends_alone = reach_ == Reach::kOwn || queue_.empty();
  const bool made = group.FinishStep(queue_.size(), ends_alone, out);
  if (made) {
    groups_.MarkChanged();
    queue_.CountStep();
  }
  return made;
}

// TGI's rule (admission_gate.h). A preempted request passed it before.
bool StepLoop::TooFewNewcomers(const GroupScheduler& group, Outputs& out) {
  const GroupAdmission& admission = group.admission();
  const std::uint32_t least = admission.MinNewcomers();
  if (least < 2) return false;
  WaitingRequest* const front = Front(group);
  if (front == nullptr || front->ran()) return false;
  GroupAdmission::Trial trial = admission.BeginTrial();
  const WaitingRequest* next = front;
  while (next != nullptr && trial.count < least && admission.AddTo(trial, *next)) {
    next = queue_.After(*next);
  }
  if (trial.count >= least) return false;
  Defer(*front, {Budget::kJoinSize, least, trial.count}, group, out);
  return true;
}

// Admits or refuses the next request. Returns false if it must wait, or if none waits.
bool StepLoop::AdmitNext(GroupScheduler& group, Outputs& out) {
  WaitingRequest* next = Candidate(group);
  if (next == nullptr) return false;
  if (const auto why = groups_.WhyNeverFits(next->request)) {
    groups_.MarkChanged();
    const RequestId request = queue_.Remove(*next).request.request;
    Refuse(request, FailureKind::kTooLarge, *why, now_, out);
    return true;
  }
  const GroupOffer best = groups_.BestFor(*next, group, reach_);
  if (best.shortage) {
    Defer(*next, *best.shortage, *groups_.Find(best.group), out);
    return false;
  }
  if (best.group != group.id()) return false;  // that group's next step admits it
  if (const auto prefix = group.admission().CheckPrefix(*next)) {
    const Shortage shortage{Budget::kPrefix, prefix->shared, prefix->present};
    queue_.Defer(*next, shortage, prefix->owner, now_, out);
    return false;
  }
  if (const auto shortage = group.admission().CheckStep(*next)) {
    Defer(*next, *shortage, group, out);
    return false;
  }
  groups_.MarkChanged();
  groups_.OnAdmitted(best);
  group.Admit(queue_.Admit(*next), SequenceId(++last_sequence_), now_, out);
  return true;
}

// A request that fits another group only does not stop this group. One that fits none is refused,
// but a restart waits for a group.
WaitingRequest* StepLoop::Front(const GroupScheduler& group) {
  return queue_.Front(group.id(), [this, &group](const WaitingRequest& waiting) {
    return group.Fits(waiting) || (!waiting.fails_at && !groups_.Fit(waiting.request));
  });
}

// The front of the queue. A static batch of equal lengths may take a later request.
WaitingRequest* StepLoop::Candidate(const GroupScheduler& group) {
  WaitingRequest* const front = Front(group);
  if (!group.admission().Selective()) return front;
  WaitingRequest* request = front;
  while (request != nullptr && (request->fails_at || group.admission().Check(*request))) {
    request = queue_.After(*request);
  }
  return request != nullptr ? request : front;
}

// The oldest running request holds what the waiting request needs.
void StepLoop::Defer(WaitingRequest& request, const Shortage& shortage, const GroupScheduler& group,
                     Outputs& out) {
  queue_.Defer(request, shortage, group.OldestRunning(), now_, out);
}

}  // namespace penstock::scheduler
