#include "router/answer/marker_table.h"

#include <algorithm>

namespace penstock::router::answer {

void MarkerTable::Add(std::string_view marker, Kind kind) { entries_.push_back({marker, kind}); }

void MarkerTable::Sort() {
  std::ranges::stable_sort(entries_, std::ranges::greater(),
                           [](const Entry& entry) { return entry.marker.size(); });
}

}  // namespace penstock::router::answer
