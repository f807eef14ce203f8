// A virtual clock with its events. Time jumps from one event to the next. Events of the same time
// happen in the order in which they were added, so a run is the same on every machine.
//
// O(log n) per event. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/time.h"

namespace penstock::sim {

template <class Event>
class Timeline {
 public:
  Time now() const { return now_; }
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  // Adds an event. If `at` is in the past, the event happens now.
  void At(Time at, Event event) {
    heap_.push_back({std::max(at, now_), next_++, std::move(event)});
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }
  void After(Duration delay, Event event) { At(now_ + delay, std::move(event)); }

  // Moves the clock to the next event and removes it. Requires: not empty.
  Event Next() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ = entry.at;
    return std::move(entry.event);
  }

 private:
  struct Entry {
    Time at;
    std::uint64_t order = 0;
    Event event;
  };
  static bool Later(const Entry& a, const Entry& b) {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }

  Time now_{};
  std::uint64_t next_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace penstock::sim
