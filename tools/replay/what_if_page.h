// What `penstock-replay what-if` shows: the recorded run beside simulated ones.
#pragma once

#include <string>
#include <vector>

#include "sim/fleet/fleet.h"
#include "sim/fleet/summary.h"
#include "tools/replay/what_if.h"

namespace penstock::replay {

// One column of the table.
struct Column {
  std::string name;
  sim::FleetResult result;
  sim::Summary summary;
};

// Figures by row, columns beside each other.
std::string ToText(const std::vector<Column>& columns);
// {"recorded": {...}, "simulated": {...}, "what if": {...}}, each as `penstock-replay trace` has
// it.
std::string ToJson(const std::vector<Column>& columns);
// A page without scripts. `notes`: what one has to know, one paragraph each.
std::string ToPage(const std::vector<Column>& columns, const std::vector<std::string>& notes);

}  // namespace penstock::replay
