// The results of a comparison, and the folder that gets them.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/bench/effective/analysis.h"
#include "tools/bench/effective/timeline_svg.h"
#include "tools/bench/effective/trace.h"

namespace penstock::bench::effective {

struct Report {
  TraceShape shape;
  std::uint32_t repeats = 1;
  double nobatch_rate = 0;  // requests per second that nobatch can serve; 0 = not measured
  std::vector<ModeRuns> runs;
  std::vector<ModeSummary> summaries;  // same order
  std::vector<Check> checks;
  std::vector<ModeTimeline> timelines;  // of the first repeat; empty: no input logs
  std::vector<std::string> commands;    // that started the servers
};

// What was sent, in words.
std::string LoadText(const Report& report);

// The table of figures, a row per mode after two rows of headings: the original's four figures,
// then ours.
using TableCells = std::vector<std::vector<std::string>>;
TableCells ToCells(const std::vector<ModeSummary>& summaries);
inline constexpr std::string_view kTableNotes =
    "The first four figures are the original's; its throughput divides by latencies that overlap.\n"
    "Then tokens and requests per second of the wall clock, and latencies from the intended "
    "arrival.\n";
std::string ToTable(const std::vector<ModeSummary>& summaries);  // with its notes
std::string ToText(const std::vector<Check>& checks);

// index.html, stats.txt, checks.txt, requests.csv, MODE.csv (num_tokens and mean latency, as the
// original's), latency.svg, latency-by-mode.svg, timeline.svg, steps.svg.
absl::Status MakeFolder(const std::string& folder);
absl::Status WriteReport(const std::string& folder, const Report& report);

}  // namespace penstock::bench::effective
