#include "router/dispatch/coalescer.h"

#include <algorithm>
#include <iterator>
#include <variant>

namespace penstock::router {

bool Coalescer::MayWait(const scheduler::Event& event) {
  const auto* tokens = std::get_if<scheduler::Tokens>(&event.what);
  return tokens != nullptr && tokens->first_index > 0;
}

bool Coalescer::Holds(std::span<const scheduler::Event> events, Time now) const {
  return now < released_ + interval_ && std::ranges::all_of(events, MayWait);
}

void Coalescer::TakeDue(Time now, std::vector<std::shared_ptr<Strand>>& due) {
  if (now < released_ + interval_) return;
  released_ = now;
  TakeAll(due);
}

void Coalescer::TakeAll(std::vector<std::shared_ptr<Strand>>& due) {
  std::ranges::move(waiting_, std::back_inserter(due));
  waiting_.clear();
}

std::optional<Time> Coalescer::until() const {
  if (waiting_.empty()) return std::nullopt;
  return released_ + interval_;
}

}  // namespace penstock::router
