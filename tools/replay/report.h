// What a replay prints and writes.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/fleet/fleet.h"
#include "sim/fleet/summary.h"

namespace penstock::replay {

std::string ToText(const sim::Summary& summary);
// One object; `rate`: the one that `search` found.
std::string ToJson(const sim::Summary& summary, std::optional<double> rate = std::nullopt);
// One line per request, in the trace's order, after a header.
std::string ToCsv(const sim::FleetResult& result);

struct NamedRun {
  std::string name;
  const sim::FleetResult* result = nullptr;
  std::string_view colour = {};  // of chart/svg.h; empty: that of the batching called `name`
};

// The runs in one picture: share of requests by time to first token, share of gaps by length, and
// running and waiting requests over time of the runs that kept their steps.
std::string ToSvg(const std::vector<NamedRun>& runs);

// kExitUsage for an option or a file that cannot be used, kExitFailure for a run that failed.
int ExitCodeOf(const absl::Status& status);

// Prints an error of a program and returns `code`.
int Complain(std::string_view program, const std::string& what, int code);

// Writes to a file; "-" is standard output.
absl::Status WriteText(const std::string& path, const std::string& text);

}  // namespace penstock::replay
