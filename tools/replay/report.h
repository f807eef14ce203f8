// What a replay prints and writes.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>

#include "sim/fleet/fleet.h"
#include "sim/fleet/summary.h"

namespace penstock::replay {

std::string ToText(const sim::Summary& summary);
// One object; `rate`: the one that `search` found.
std::string ToJson(const sim::Summary& summary, std::optional<double> rate = std::nullopt);
// One line per request, in the trace's order, after a header.
std::string ToCsv(const sim::FleetResult& result);
// Charts: share of requests by time to first token, share of gaps by length, and the batch over
// time.
std::string ToSvg(const sim::FleetResult& result, const sim::Summary& summary);

// Writes to a file; "-" is standard output.
absl::Status WriteText(const std::string& path, const std::string& text);

}  // namespace penstock::replay
