#include "tools/bench/effective/report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/bad_option.h"
#include "common/status.h"
#include "tools/bench/effective/latency_svg.h"
#include "tools/bench/effective/page.h"
#include "tools/bench/effective/steps_svg.h"

namespace penstock::bench::effective {
namespace {

constexpr std::size_t kGroupColumns[] = {1, 5, 7, 10, 12};  // that begin a group of figures

absl::Status Write(const std::string& folder, const char* name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError("cannot write `" + path.string() + "`");
  return absl::OkStatus();
}

std::string BucketCsv(const ModeSummary& summary) {
  std::string text = "num_tokens,mean_latency_s\n";
  for (const Bucket& bucket : summary.buckets) {
    text += absl::StrFormat("%g,%.6f\n", bucket.num_tokens, bucket.mean);
  }
  return text;
}

std::string RequestsCsv(const Report& report) {
  std::string text =
      "mode,repeat,request,num_tokens,latency_s,first_token_s,server_latency_s,failed\n";
  for (const ModeRuns& mode : report.runs) {
    for (std::size_t r = 0; r < mode.runs.size(); ++r) {
      const std::vector<Outcome>& outcomes = mode.runs[r].outcomes;
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        text +=
            absl::StrFormat("%s,%zu,%zu,%u,%.6f,%.6f,%.6f,%d\n", mode.mode.c_str(), r + 1, i,
                            outcomes[i].num_tokens, outcomes[i].latency, outcomes[i].first_token,
                            outcomes[i].server_latency, outcomes[i].error.empty() ? 0 : 1);
      }
    }
  }
  return text;
}

const char* PresetName(Preset preset) {
  if (preset == Preset::kReadme) return "readme";
  return preset == Preset::kRecorded ? "recorded" : "head";
}

}  // namespace

std::string LoadText(const Report& report) {
  std::string text =
      absl::StrFormat("preset %s, seed %u, %u repeat%s of %u requests at %.2f requests/s",
                      PresetName(report.shape.preset), report.shape.seed, report.repeats,
                      report.repeats == 1 ? "" : "s", report.shape.samples, RateOf(report.shape));
  if (report.nobatch_rate > 0) {
    text += absl::StrFormat(" (%.2f times the %.2f that nobatch serves)",
                            RateOf(report.shape) / report.nobatch_rate, report.nobatch_rate);
  }
  return text;
}

TableCells ToCells(const std::vector<ModeSummary>& summaries) {
  TableCells rows = {{"", "latency/token", "throughput", "tokens", "sum", "tokens", "requests",
                      "latency", "", "", "first token", "", "gap"},
                     {"mode", "s", "tokens/s", "", "s", "/s", "/s", "p50 s", "p90 s", "p99 s",
                      "p50 s", "p99 s", "mean ms"}};
  const auto number = [](double value, int digits) {
    return absl::StrFormat("%.*f", digits, value);
  };
  for (const ModeSummary& s : summaries) {
    rows.push_back(
        {s.mode, number(s.original.latency_per_token, 4), number(s.original.throughput, 2),
         absl::StrCat(s.original.tokens), number(s.original.elapsed, 2),
         number(s.tokens_per_second, 1), number(s.requests_per_second, 2), number(s.latency.p50, 3),
         number(s.latency.p90, 3), number(s.latency.p99, 3), number(s.first_token.p50, 3),
         number(s.first_token.p99, 3), number(1000 * s.inter_token.mean, 2)});
  }
  return rows;
}

std::string ToTable(const std::vector<ModeSummary>& summaries) {
  const TableCells rows = ToCells(summaries);
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += absl::StrFormat("%-*s", widths[0], row[0]);
    for (std::size_t c = 1; c < row.size(); ++c) {
      const bool group = std::ranges::find(kGroupColumns, c) != std::end(kGroupColumns);
      text += absl::StrFormat("%s%*s", group ? " | " : " ", widths[c], row[c]);
    }
    text += "\n";
  }
  return text + std::string(kTableNotes);
}

std::string ToText(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    text += (check.passed ? "yes  " : "NO   ") + check.what + ": " + check.measured + "\n";
  }
  return text;
}

absl::Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return BadOption("output", folder, "a folder that can be made");
}

absl::Status WriteReport(const std::string& folder, const Report& report) {
  PENSTOCK_RETURN_IF_ERROR(
      Write(folder, "stats.txt", LoadText(report) + "\n\n" + ToTable(report.summaries)));
  PENSTOCK_RETURN_IF_ERROR(Write(folder, "checks.txt", ToText(report.checks)));
  PENSTOCK_RETURN_IF_ERROR(Write(folder, "requests.csv", RequestsCsv(report)));
  for (const ModeSummary& summary : report.summaries) {
    PENSTOCK_RETURN_IF_ERROR(Write(folder, (summary.mode + ".csv").c_str(), BucketCsv(summary)));
  }
  PENSTOCK_RETURN_IF_ERROR(Write(folder, "latency.svg", LatencySvg(report)));
  PENSTOCK_RETURN_IF_ERROR(Write(folder, "latency-by-mode.svg", LatencyByModeSvg(report)));
  if (!report.timelines.empty()) {
    PENSTOCK_RETURN_IF_ERROR(Write(folder, "timeline.svg", TimelineSvg(report.timelines)));
    PENSTOCK_RETURN_IF_ERROR(Write(folder, "steps.svg", StepsSvg(report.timelines)));
  }
  return Write(folder, "index.html", ToPage(report));
}

}  // namespace penstock::bench::effective
