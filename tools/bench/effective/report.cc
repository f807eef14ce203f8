#include "tools/bench/effective/report.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/status.h"
#include "tools/replay/svg_chart.h"

namespace penstock::bench::effective {
namespace {

using replay::Chart;
using replay::Curve;

// More lengths than this are drawn in groups of ten.
constexpr std::size_t kMostPoints = 40;
constexpr std::uint32_t kDrawnTogether = 10;

absl::Status Write(const std::string& folder, const char* name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return absl::UnavailableError("cannot write `" + path.string() + "`");
  return absl::OkStatus();
}

// Neighbouring lengths as one bucket, so that a curve over 200 lengths is readable.
std::vector<Bucket> Joined(const std::vector<Bucket>& buckets) {
  std::vector<Bucket> joined;
  for (const Bucket& bucket : buckets) {
    const std::uint32_t middle =
        (bucket.num_tokens - 1) / kDrawnTogether * kDrawnTogether + kDrawnTogether / 2;
    if (joined.empty() || joined.back().num_tokens != middle) {
      joined.push_back({middle, 0, 0, 0, 0});
    }
    Bucket& sum = joined.back();
    const auto own = static_cast<double>(bucket.count);
    const auto all = static_cast<double>(sum.count + bucket.count);
    sum.mean += (bucket.mean - sum.mean) * own / all;
    sum.count += bucket.count;
    sum.low = sum.high = sum.mean;
  }
  return joined;
}

Curve ToCurve(const ModeSummary& summary) {
  Curve curve{summary.mode, {}, {}, true};
  const bool join = summary.buckets.size() > kMostPoints;
  for (const Bucket& bucket : join ? Joined(summary.buckets) : summary.buckets) {
    curve.points.push_back({static_cast<double>(bucket.num_tokens), bucket.mean});
    if (bucket.high > bucket.low) {
      curve.band.push_back({static_cast<double>(bucket.num_tokens), bucket.low, bucket.high});
    }
  }
  return curve;
}

Chart LatencyChart(std::string title) {
  return {std::move(title), "tokens requested", "latency from intended arrival (s)", {}};
}

std::string LatencySvg(const Report& report) {
  Chart chart = LatencyChart("Latency by requested tokens");
  for (const ModeSummary& summary : report.summaries) chart.curves.push_back(ToCurve(summary));
  return replay::ToSvg({chart}, {760, 420});
}

std::string LatencyByModeSvg(const Report& report) {
  std::vector<Chart> charts;
  for (const ModeSummary& summary : report.summaries) {
    Chart chart = LatencyChart(summary.mode);
    Curve mean = ToCurve(summary);
    mean.name = "mean";
    Curve fit{"fit", {}, {}, false};
    if (summary.buckets.size() > 1) {
      for (const Bucket* end : {&summary.buckets.front(), &summary.buckets.back()}) {
        const auto x = static_cast<double>(end->num_tokens);
        fit.points.push_back({x, std::max(summary.line.intercept + summary.line.slope * x, 0.0)});
      }
      chart.title += absl::StrFormat(": %.3f s %+.2f ms per token, r %.3f", summary.line.intercept,
                                     1000 * summary.line.slope, summary.line.r);
    }
    chart.curves = {std::move(mean), std::move(fit)};
    charts.push_back(std::move(chart));
  }
  return replay::ToSvg(charts);
}

std::string BucketCsv(const ModeSummary& summary) {
  std::string text = "num_tokens,mean_latency_s\n";
  for (const Bucket& bucket : summary.buckets) {
    text += absl::StrFormat("%u,%.6f\n", bucket.num_tokens, bucket.mean);
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

std::string Load(const Report& report) {
  std::string text =
      absl::StrFormat("preset %s, seed %u, %u repeats of %u requests at %.2f requests/s",
                      PresetName(report.shape.preset), report.shape.seed, report.repeats,
                      report.shape.samples, RateOf(report.shape));
  if (report.nobatch_rate > 0) {
    text += absl::StrFormat(" (%.2f times the %.2f that nobatch serves)",
                            RateOf(report.shape) / report.nobatch_rate, report.nobatch_rate);
  }
  return text;
}

std::string ChecksHtml(const std::vector<Check>& checks) {
  std::string html = "<table><tr><th></th><th>expected</th><th>measured</th></tr>\n";
  for (const Check& check : checks) {
    html += std::string("<tr><td class=\"") + (check.passed ? "yes\">yes" : "no\">no") +
            "</td><td>" + replay::SvgEscape(check.what) + "</td><td>" +
            replay::SvgEscape(check.measured) + "</td></tr>\n";
  }
  return html + "</table>\n";
}

std::string Figure(const char* file, const char* text) {
  return std::string("<figure><img src=\"") + file + "\" alt=\"" + text + "\"><figcaption>" + text +
         "</figcaption></figure>\n";
}

std::string Page(const Report& report) {
  std::string html =
      "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Effective batching"
      "</title><style>body{font-family:sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;"
      "color:#24292f}img{max-width:100%}figure{margin:1.5em 0}figcaption{color:#57606a}pre{"
      "overflow-x:auto;background:#f6f8fa;padding:1em}td,th{text-align:left;padding:.2em .8em .2em "
      "0;vertical-align:top}.yes{color:#1a7f37}.no{color:#d1242f;font-weight:bold}</style></head>"
      "<body><h1>Effective batching</h1>\n<p>" +
      replay::SvgEscape(Load(report)) + "</p>\n<pre>" +
      replay::SvgEscape(ToTable(report.summaries)) + "</pre>\n";
  if (!report.checks.empty())
    html += "<h2>Expected and measured</h2>\n" + ChecksHtml(report.checks);
  html += "<h2>Latency</h2>\n";
  html += Figure("latency.svg",
                 "Mean latency of the requests that asked for the same number of tokens; the shade "
                 "is where the mean lies with 95 % confidence, from the spread of the repeats.");
  html += Figure("latency-by-mode.svg", "The same, each mode on its own scale, with its line.");
  if (!report.timelines.empty()) {
    html += "<h2>Timeline of the first repeat</h2>\n";
    html += Figure("timeline.svg",
                   "A line per request in the order of arrival; below each mode how many requests "
                   "were in each step. Open the picture itself to read a line's numbers.");
    html +=
        Figure("steps.svg",
               "A column per step, from the same moment of the trace: the requests in that step.");
  }
  if (!report.commands.empty()) {
    html += "<h2>Servers</h2>\n<pre>";
    for (const std::string& command : report.commands) html += replay::SvgEscape(command) + "\n";
    html += "</pre>\n";
  }
  return html + "<p>Numbers: stats.txt, requests.csv and a CSV file per mode.</p></body></html>\n";
}

}  // namespace

std::string ToTable(const std::vector<ModeSummary>& summaries) {
  std::string text = absl::StrFormat(
      "%-13s | %13s %10s %8s %10s | %8s %7s | %8s %8s %8s | %9s %9s | %8s\n", "", "latency/token",
      "throughput", "tokens", "sum", "tokens", "req.", "latency", "", "", "1st token", "", "gap");
  text += absl::StrFormat("%-13s | %13s %10s %8s %10s | %8s %7s | %8s %8s %8s | %9s %9s | %8s\n",
                          "mode", "s", "tokens/s", "", "s", "/s", "/s", "p50 s", "p90 s", "p99 s",
                          "p50 s", "p99 s", "mean ms");
  for (const ModeSummary& s : summaries) {
    text += absl::StrFormat(
        "%-13s | %13.4f %10.2f %8llu %10.2f | %8.1f %7.2f | %8.3f %8.3f %8.3f | %9.3f %9.3f | "
        "%8.2f\n",
        s.mode.c_str(), s.original.latency_per_token, s.original.throughput, s.original.tokens,
        s.original.elapsed, s.tokens_per_second, s.requests_per_second, s.latency.p50,
        s.latency.p90, s.latency.p99, s.first_token.p50, s.first_token.p99,
        1000 * s.inter_token.mean);
  }
  return text +
         "left: the original's figures and formulas (throughput divides by latencies that "
         "overlap)\n"
         "then: tokens and requests per second of the wall clock; latencies from the intended "
         "arrival\n";
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
  return BadValue("output", folder, "a folder that can be made");
}

absl::Status WriteReport(const std::string& folder, const Report& report) {
  PENSTOCK_RETURN_IF_ERROR(
      Write(folder, "stats.txt", Load(report) + "\n\n" + ToTable(report.summaries)));
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
  return Write(folder, "index.html", Page(report));
}

}  // namespace penstock::bench::effective
