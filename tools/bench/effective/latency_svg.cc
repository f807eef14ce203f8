#include "tools/bench/effective/latency_svg.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "tools/chart/line_chart.h"
#include "tools/chart/svg.h"

namespace penstock::bench::effective {
namespace {

using chart::Chart;
using chart::Curve;

// With more lengths than this, ten neighbouring ones are one point.
constexpr std::size_t kMostPoints = 40;
constexpr std::uint32_t kWide = 10;

std::uint32_t IntervalOf(const Report& report) {
  const auto many = [](const ModeSummary& summary) { return summary.buckets.size() > kMostPoints; };
  return std::ranges::any_of(report.summaries, many) ? kWide : 1;
}

Curve MeanCurve(const ModeRuns& runs, std::uint32_t interval) {
  Curve curve{
      .name = runs.mode, .points = {}, .colour = chart::ModeColour(runs.mode), .dots = true};
  for (const Bucket& bucket : Buckets(runs, interval)) {
    curve.points.push_back({bucket.num_tokens, bucket.mean});
    if (bucket.high > bucket.low) {
      curve.band.push_back({bucket.num_tokens, bucket.low, bucket.high});
    }
  }
  return curve;
}

Chart LatencyChart(std::string title) {
  return {.title = std::move(title),
          .x = {.label = "tokens requested", .whole = true},
          .y = {.label = "seconds from intended arrival"},
          .curves = {}};
}

}  // namespace

std::string LatencySvg(const Report& report) {
  Chart chart = LatencyChart("Mean latency by requested tokens");
  for (const ModeRuns& runs : report.runs) {
    chart.curves.push_back(MeanCurve(runs, IntervalOf(report)));
  }
  return chart::ToSvg({chart});
}

std::string LatencyByModeSvg(const Report& report) {
  std::vector<Chart> charts;
  for (std::size_t m = 0; m < report.runs.size(); ++m) {
    const ModeSummary& summary = report.summaries[m];
    Chart chart = LatencyChart(summary.mode);
    Curve mean = MeanCurve(report.runs[m], IntervalOf(report));
    mean.name = "";
    Curve fit{.name = "", .points = {}, .colour = chart::kInk, .dashed = true};
    if (summary.buckets.size() > 1) {
      for (const Bucket* end : {&summary.buckets.front(), &summary.buckets.back()}) {
        const double x = end->num_tokens;
        fit.points.push_back({x, std::max(summary.line.intercept + summary.line.slope * x, 0.0)});
      }
      fit.name = absl::StrFormat("%.3f s %+.2f ms a token, r %.4f", summary.line.intercept,
                                 1000 * summary.line.slope, summary.line.r);
    }
    chart.curves = {std::move(mean), std::move(fit)};
    charts.push_back(std::move(chart));
  }
  return chart::ToSvg(charts);
}

std::string LatencyCaption(const Report& report) {
  std::string text = IntervalOf(report) == 1
                         ? "A point is the mean latency of the requests that asked for one number "
                           "of tokens."
                         : "A point is the mean latency of the requests whose number of tokens is "
                           "in one interval of ten: 1 to 10, 11 to 20, and so on.";
  if (report.repeats > 1) {
    text +=
        " The shade is the 95 % confidence interval of the mean, from the spread of the "
        "repeats.";
  }
  return text;
}

}  // namespace penstock::bench::effective
