// Strands whose newest tokens wait for a short time, so that the tokens of several steps are
// handled in one run and sent in one write (--stream-interval). The first token and the end of the
// output do not wait. Nor does a token that comes an interval after the last release. So nothing
// waits if steps take longer than the interval.
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

class Coalescer {
 public:
  explicit Coalescer(Duration interval) : interval_(interval) {}

  // Whether the event brings tokens after the first, of a request that has not ended.
  static bool MayWait(const scheduler::Event& event);
  // Whether these events, of one request and one step, wait for the next release.
  bool Holds(std::span<const scheduler::Event> events, Time now) const;
  void Add(std::shared_ptr<Strand> strand) { waiting_.push_back(std::move(strand)); }
  // Returns false if the strand was not waiting.
  bool Remove(const std::shared_ptr<Strand>& strand) { return std::erase(waiting_, strand) > 0; }
  // Appends all strands to `due` if the time of the next release has come.
  void TakeDue(Time now, std::vector<std::shared_ptr<Strand>>& due);
  void TakeAll(std::vector<std::shared_ptr<Strand>>& due);
  // The time of the next release; nullopt: no strand waits.
  std::optional<Time> until() const;

 private:
  const Duration interval_;
  Time released_{};  // the last time
  std::vector<std::shared_ptr<Strand>> waiting_;
};

}  // namespace penstock::router
