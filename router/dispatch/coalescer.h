// Requests whose newest tokens wait a little, so that several steps' tokens make one turn of the
// text pool and one write (--stream-interval). What must not wait is let through: the first token,
// the end, and whatever comes when the last turn is an interval ago; so nothing waits where steps
// take longer than that.
//
// Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/time.h"
#include "router/dispatch/text_pool.h"
#include "scheduler/output.h"

namespace penstock::router {

class HeldLanes {
 public:
  explicit HeldLanes(Duration interval) : interval_(interval) {}

  // Tokens behind the first, of a request that goes on.
  static bool MayWait(const scheduler::Event& event);
  // Whether these events, of one request and one step, may wait.
  bool Holds(std::span<const scheduler::Event> events, Time now) const;
  void Add(std::shared_ptr<Lane> lane) { lanes_.push_back(std::move(lane)); }
  // False: it is not among them.
  bool Remove(const std::shared_ptr<Lane>& lane) { return std::erase(lanes_, lane) > 0; }
  // Appends all to `due` when their turn has come.
  void TakeDue(Time now, std::vector<std::shared_ptr<Lane>>& due);
  void TakeAll(std::vector<std::shared_ptr<Lane>>& due);
  // The time of the next turn, if any lane waits for it.
  std::optional<Time> until() const;

 private:
  const Duration interval_;
  Time turn_{};  // the last one
  std::vector<std::shared_ptr<Lane>> lanes_;
};

}  // namespace penstock::router
