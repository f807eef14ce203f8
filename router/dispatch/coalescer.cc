#include "router/dispatch/held_lanes.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace penstock::router {

bool HeldLanes::MayWait(const scheduler::Event& event) {
  const auto* tokens = std::get_if<scheduler::Tokens>(&event.what);
  return tokens != nullptr && tokens->first_index > 0;
}

bool HeldLanes::Holds(std::span<const scheduler::Event> events, Time now) const {
  return now < turn_ + interval_ && std::all_of(events.begin(), events.end(), MayWait);
}

void HeldLanes::TakeDue(Time now, std::vector<std::shared_ptr<Lane>>& due) {
  if (now < turn_ + interval_) return;
  turn_ = now;
  TakeAll(due);
}

void HeldLanes::TakeAll(std::vector<std::shared_ptr<Lane>>& due) {
  std::move(lanes_.begin(), lanes_.end(), std::back_inserter(due));
  lanes_.clear();
}

std::optional<Time> HeldLanes::until() const {
  if (lanes_.empty()) return std::nullopt;
  return turn_ + interval_;
}

}  // namespace penstock::router
