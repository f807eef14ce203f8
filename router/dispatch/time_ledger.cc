#include "router/dispatch/time_ledger.h"

#include <algorithm>
#include <utility>

namespace penstock::router {

TimeLedger::TimeLedger(Time start, TimeKind kind)
    : start_(start), mark_(start), since_(start), kind_(kind) {
  Append(kind, start, start);
}

void TimeLedger::Advance(Time at) {
  if (at <= mark_) return;
  Add(kind_, at - mark_);
  mark_ = at;
  if (open_) spans_.back().end = at;
}

void TimeLedger::Enter(TimeKind kind, Time at, std::optional<RequestId> behind) {
  if (closed_) return;
  Advance(at);
  if (kind == kind_ && behind == behind_) return;
  if (open_ && spans_.back().begin == spans_.back().end) spans_.pop_back();
  kind_ = kind;
  behind_ = behind;
  since_ = mark_;
  Append(kind, mark_, mark_).behind = behind;
  open_ = true;
}

// The spans of what runs are its chunks and decodes.
void TimeLedger::Admit(Time at) {
  if (closed_) return;
  Enter(TimeKind::kBetweenSteps, at);
  if (open_) spans_.pop_back();
  open_ = false;
  prompt_ = true;
}

void TimeLedger::Preempt(Time at) {
  again_ = true;
  Enter(TimeKind::kPreempted, at);
}

void TimeLedger::Take(const Step& step) {
  if (closed_ || !running()) return;
  const Duration passed = std::max(Duration{0}, step.at - mark_);
  const Duration computed = std::min(passed, step.computed);
  const Duration queued = std::min(passed - computed, step.queued);
  TimeKind kind = TimeKind::kDecode;
  if (prompt_) {
    kind = again_ ? TimeKind::kRecompute : TimeKind::kPrefill;
  } else if (!step.gave_token) {
    kind = TimeKind::kGrammarMask;
  } else if (step.prompt_of) {
    kind = TimeKind::kSharedDecode;
  }
  Add(kind, computed);
  Add(TimeKind::kShardQueue, queued);
  Add(TimeKind::kBetweenSteps, passed - computed - queued);
  mark_ = std::max(mark_, step.at);
  if (prompt_) {
    ShowPrompt(step, kind, computed);
  } else {
    ShowDecode(step);
  }
  prompt_ = prompt_ && !step.gave_token;
}

void TimeLedger::ShowPrompt(const Step& step, TimeKind kind, Duration computed) {
  Span& span = Append(kind, mark_ - computed, mark_);
  span.steps = 1;
  for (const RequestId other : step.others) span.beside[span.beside_count++] = other;
  span.beside_left_out = step.other_count - span.beside_count;
}

void TimeLedger::ShowDecode(const Step& step) {
  const bool more = !spans_.empty() && spans_.back().kind == TimeKind::kDecode;
  Span& span = more ? spans_.back() : Append(TimeKind::kDecode, mark_, mark_);
  if (!more && spans_.size() > 1) span.begin = std::min(mark_, spans_[spans_.size() - 2].end);
  span.end = mark_;
  ++span.steps;
  if (!step.prompt_of || span.beside_count == kMostBeside) return;
  const auto known = std::span(span.beside).first(span.beside_count);
  if (std::ranges::find(known, *step.prompt_of) == known.end()) {
    span.beside[span.beside_count++] = *step.prompt_of;
  }
}

void TimeLedger::Close(Time at) {
  if (closed_) return;
  Advance(at);
  if (open_ && spans_.back().begin == spans_.back().end) spans_.pop_back();
  closed_ = true;
  open_ = false;
}

TimeLedger::Span& TimeLedger::Append(TimeKind kind, Time begin, Time end) {
  if (spans_.size() == kMostSpans) {
    spans_.erase(spans_.begin() + kMostSpans / 2);
    ++left_out_;
  }
  return spans_.emplace_back(Span{kind, begin, end, {}, {}, 0, 0, 0});
}

LedgerView TimeLedger::View(Time now) const {
  TimeLedger copy = *this;
  copy.Close(now);
  LedgerView view;
  view.begin = start_;
  view.wall = copy.mark_ - start_;
  view.closed = closed_;
  view.now = kind_;
  view.totals = copy.totals_;
  const auto most = std::ranges::max_element(view.totals);
  view.most = static_cast<TimeKind>(most - view.totals.begin());
  view.spans_left_out = left_out_;
  Duration longest{-1};
  for (const Span& span : copy.spans_) {
    view.spans.push_back({span.kind,
                          span.begin,
                          span.end,
                          span.behind,
                          false,
                          {span.beside.begin(), span.beside.begin() + span.beside_count},
                          span.beside_left_out,
                          span.steps});
    if (span.kind != view.most || span.end - span.begin <= longest) continue;
    longest = span.end - span.begin;
    view.behind = span.behind;
  }
  return view;
}

}  // namespace penstock::router
