// Decisions: why the scheduler did what it did to a request.
#pragma once

#include "common/ids.h"
#include "common/time.h"
#include "scheduler/admission/shortage.h"
#include "scheduler/output.h"
#include "scheduler/step/sequence.h"

namespace penstock::scheduler {

// Appends a decision to the outputs. The reference is valid until the next decision.
inline Decision& Decide(RequestId request, DecisionKind kind, Time now, Outputs& out) {
  Decision& decision = out.decisions.emplace_back();
  decision.at = now;
  decision.request = request;
  decision.kind = kind;
  return decision;
}

// The same for a sequence of a group.
inline Decision& Decide(GroupId group, const Sequence& sequence, DecisionKind kind, Time now,
                        Outputs& out) {
  Decision& decision = Decide(sequence.request.request, kind, now, out);
  decision.group = group;
  return decision;
}

// Refuses a request: the decision and its terminal event.
inline void Refuse(RequestId request, FailureKind kind, const Refusal& why, Time now,
                   Outputs& out) {
  Decision& decision = Decide(request, DecisionKind::kRefused, now, out);
  decision.short_of = why.shortage.budget;
  decision.needed = why.shortage.needed;
  decision.available = why.shortage.available;
  out.AddEvent(request, Failed{kind, why.message});
}

}  // namespace penstock::scheduler
