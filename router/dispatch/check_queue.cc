#include "router/dispatch/check_queue.h"

#include <algorithm>
#include <utility>

namespace penstock::router {
namespace {

bool SoonerThan(const CheckQueue::Check& a, const CheckQueue::Check& b) {
  return a->turn < b->turn;
}

}  // namespace

CheckQueue::Check CheckQueue::Find(const Grammar& grammar) const {
  if (grammar.source.empty()) return nullptr;
  const auto same = [&grammar](const Check& check) {
    return check->grammar.source == grammar.source;
  };
  for (const auto* checks : {&queued_, &running_}) {
    const auto found = std::find_if(checks->begin(), checks->end(), same);
    if (found != checks->end()) return *found;
  }
  return nullptr;
}

// A tenant's checks have turns one behind the other, so that those of two tenants alternate.
CheckQueue::Check CheckQueue::Add(Check check) {
  check->turn = turn_ + 1;
  for (const auto* checks : {&queued_, &running_}) {
    for (const Check& other : *checks) {
      if (other->tenant == check->tenant) check->turn = std::max(check->turn, other->turn + 1);
    }
  }
  queued_.push_back(std::move(check));
  if (queued_.size() <= limit_) return nullptr;
  const auto last = std::max_element(queued_.rbegin(), queued_.rend(), SoonerThan);
  Check surplus = *last;
  queued_.erase(std::next(last).base());
  return surplus;
}

bool CheckQueue::MayRun(const GrammarCheck& check) const {
  std::size_t all = 0;
  std::size_t own = 0;
  for (const Check& other : running_) {
    if (other->costly != check.costly) continue;
    ++all;
    if (other->tenant == check.tenant) ++own;
  }
  return all < seats_ && own < seats_of_tenant_;
}

CheckQueue::Check CheckQueue::Take() {
  Check next;
  for (const Check& check : queued_) {
    if (next != nullptr && !SoonerThan(check, next)) continue;
    if (MayRun(*check)) next = check;
  }
  if (next == nullptr) return nullptr;
  Drop(next);
  turn_ = std::max(turn_, next->turn);
  running_.push_back(next);
  return next;
}

CheckQueue::Check CheckQueue::PutOff(Check check) {
  Release(check);
  check->costly = true;
  return Add(std::move(check));
}

// By value: the caller's may be the very entry.
void CheckQueue::Release(Check check) { std::erase(running_, check); }

void CheckQueue::Drop(Check check) { std::erase(queued_, check); }

}  // namespace penstock::router
