#include "tools/bench/effective/analysis.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace penstock::bench::effective {
namespace {

double Ratio(double sum, double by) { return by > 0 ? sum / by : 0; }

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return Ratio(sum, static_cast<double>(values.size()));
}

// Two-sided 95 % of Student's t.
double StudentT(std::size_t degrees) {
  constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                               2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                               2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064};
  if (degrees == 0) return 0;
  return degrees <= std::size(kTable) ? kTable[degrees - 1] : 1.96 + 2.5 / degrees;
}

// Half the width of the confidence interval of the mean of independent values.
double Confidence(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const double mean = Mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return StudentT(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
}

// Adds every request that was answered.
void AddOutcomes(const ModeRuns& runs, ModeSummary& summary) {
  std::vector<double> latency, first, gaps;
  double per_token = 0, server_per_token = 0;
  for (const TraceRun& run : runs.runs) {
    for (const Outcome& outcome : run.outcomes) {
      if (!outcome.error.empty()) {
        ++summary.failed;
        if (summary.first_error.empty()) summary.first_error = outcome.error;
        continue;
      }
      ++summary.requests;
      summary.original.tokens += outcome.num_tokens;
      summary.original.elapsed += outcome.server_latency;
      server_per_token += outcome.server_latency / outcome.num_tokens;
      per_token += outcome.latency / outcome.num_tokens;
      latency.push_back(outcome.latency);
      first.push_back(outcome.first_token);
      if (outcome.num_tokens < 2) continue;
      gaps.push_back((outcome.latency - outcome.first_token) / (outcome.num_tokens - 1));
    }
  }
  const auto requests = static_cast<double>(summary.requests);
  summary.per_token = Ratio(per_token, requests);
  summary.original.latency_per_token = Ratio(server_per_token, requests);
  summary.original.throughput =
      Ratio(static_cast<double>(summary.original.tokens), summary.original.elapsed);
  summary.latency = penstock::Summarise(std::move(latency));
  summary.first_token = penstock::Summarise(std::move(first));
  summary.inter_token = penstock::Summarise(std::move(gaps));
}

const ModeSummary* Find(const std::vector<ModeSummary>& summaries, std::string_view mode) {
  for (const ModeSummary& summary : summaries) {
    if (summary.mode == mode && !summary.buckets.empty()) return &summary;
  }
  return nullptr;
}

// The first request whose tokens differ between two modes, in words; empty: none.
std::optional<std::string> Difference(const ModeRuns& a, const ModeRuns& b) {
  for (std::size_t r = 0; r < std::min(a.runs.size(), b.runs.size()); ++r) {
    const auto& left = a.runs[r].outcomes;
    const auto& right = b.runs[r].outcomes;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      if (!left[i].error.empty() || !right[i].error.empty()) continue;
      if (left[i].tokens == right[i].tokens) continue;
      return absl::StrFormat("repeat %zu, request %zu: %s and %s differ", r + 1, i, a.mode.c_str(),
                             b.mode.c_str());
    }
  }
  return std::nullopt;
}

Check SameTokens(const std::vector<ModeRuns>& runs) {
  Check check{"every request has the same tokens in every mode", "", true};
  std::uint64_t compared = 0;
  for (const TraceRun& run : runs.front().runs) compared += run.outcomes.size();
  for (const ModeRuns& other : runs) {
    const auto difference = Difference(runs.front(), other);
    if (!difference) continue;
    return {check.what, *difference, false};
  }
  check.measured = absl::StrFormat("%u requests in %zu modes", compared, runs.size());
  return check;
}

Check Complete(const std::vector<ModeSummary>& summaries) {
  Check check{"every request was answered", "", true};
  for (const ModeSummary& summary : summaries) {
    if (summary.failed == 0) continue;
    check.passed = false;
    check.measured +=
        absl::StrFormat("%s: %u failed, the first: ", summary.mode.c_str(), summary.failed) +
        summary.first_error + ". ";
  }
  if (check.passed) check.measured = "none failed";
  return check;
}

Check StraightLine(const ModeSummary& dynamic) {
  const double top = dynamic.buckets.back().mean;
  const double share = std::abs(dynamic.line.intercept) / top;
  return {
      "dynamic: latency is proportional to the tokens asked for (r > 0.99, intercept at most "
      "5 % of the longest bucket)",
      absl::StrFormat("r %.4f, intercept %.1f %%", dynamic.line.r, 100 * share),
      dynamic.line.r > 0.99 && share <= 0.05};
}

Check Flat(const ModeSummary& summary) {
  const double range = summary.buckets.back().num_tokens - summary.buckets.front().num_tokens;
  std::vector<double> means;
  for (const Bucket& bucket : summary.buckets) means.push_back(bucket.mean);
  const double share = std::abs(summary.line.slope) * range / Mean(means);
  return {summary.mode +
              ": latency hardly depends on the tokens asked for (the line rises by at "
              "most 25 % of the mean)",
          absl::StrFormat("%.1f %%", 100 * share), share <= 0.25};
}

Check WellBelow(const ModeSummary& dynamic, const ModeSummary& other) {
  const double ratio = dynamic.per_token / other.per_token;
  return {"dynamic: latency per token is at most half of " + other.mode + "'s",
          absl::StrFormat("%.4f s against %.4f s, %.2f of it", dynamic.per_token, other.per_token,
                          ratio),
          ratio <= 0.5};
}

Check LongestNoSlower(const ModeSummary& dynamic, const ModeSummary& nobatch) {
  const double own = dynamic.buckets.back().mean;
  const double other = nobatch.buckets.back().mean;
  return {"dynamic: the longest requests are no slower than with nobatch",
          absl::StrFormat("%g tokens: %.3f s against %.3f s", dynamic.buckets.back().num_tokens,
                          own, other),
          own <= other};
}

}  // namespace

Line Fit(const std::vector<Bucket>& buckets) {
  if (buckets.size() < 2) return {};
  double x = 0, y = 0;
  for (const Bucket& bucket : buckets) {
    x += bucket.num_tokens;
    y += bucket.mean;
  }
  x /= static_cast<double>(buckets.size());
  y /= static_cast<double>(buckets.size());
  double xx = 0, xy = 0, yy = 0;
  for (const Bucket& bucket : buckets) {
    const double dx = bucket.num_tokens - x;
    const double dy = bucket.mean - y;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  const double slope = Ratio(xy, xx);
  return {slope, y - slope * x, Ratio(xy, std::sqrt(xx * yy))};
}

std::vector<Bucket> Buckets(const ModeRuns& runs, std::uint32_t width) {
  std::map<std::uint32_t, std::vector<std::vector<double>>> latencies;  // by interval and repeat
  for (std::size_t r = 0; r < runs.runs.size(); ++r) {
    for (const Outcome& outcome : runs.runs[r].outcomes) {
      if (!outcome.error.empty()) continue;
      auto& of_interval = latencies[(outcome.num_tokens - 1) / width];
      of_interval.resize(runs.runs.size());
      of_interval[r].push_back(outcome.latency);
    }
  }
  std::vector<Bucket> buckets;
  for (const auto& [interval, repeats] : latencies) {
    std::vector<double> all;
    std::vector<double> means;
    for (const std::vector<double>& repeat : repeats) {
      all.insert(all.end(), repeat.begin(), repeat.end());
      if (!repeat.empty()) means.push_back(Mean(repeat));
    }
    const double mean = Mean(all);
    const double half = Confidence(means);
    const double middle = interval * width + (width + 1) / 2.0;
    buckets.push_back({middle, all.size(), mean, mean - half, mean + half});
  }
  return buckets;
}

ModeSummary Summarise(const ModeRuns& runs) {
  ModeSummary summary;
  summary.mode = runs.mode;
  AddOutcomes(runs, summary);
  double seconds = 0;
  for (const TraceRun& run : runs.runs) seconds += run.seconds;
  summary.tokens_per_second = Ratio(static_cast<double>(summary.original.tokens), seconds);
  summary.requests_per_second = Ratio(static_cast<double>(summary.requests), seconds);
  summary.buckets = Buckets(runs, 1);
  summary.line = Fit(summary.buckets);
  return summary;
}

std::vector<Check> Compare(const std::vector<ModeRuns>& runs,
                           const std::vector<ModeSummary>& summaries) {
  std::vector<Check> checks = {Complete(summaries)};
  if (runs.size() > 1) checks.push_back(SameTokens(runs));
  const ModeSummary* nobatch = Find(summaries, "nobatch");
  const ModeSummary* fixed = Find(summaries, "static");
  const ModeSummary* dynamic = Find(summaries, "dynamic");
  if (dynamic != nullptr) checks.push_back(StraightLine(*dynamic));
  for (const ModeSummary* flat : {nobatch, fixed}) {
    if (flat != nullptr) checks.push_back(Flat(*flat));
  }
  for (const ModeSummary* other : {nobatch, fixed}) {
    if (dynamic != nullptr && other != nullptr) checks.push_back(WellBelow(*dynamic, *other));
  }
  if (dynamic != nullptr && nobatch != nullptr) {
    checks.push_back(LongestNoSlower(*dynamic, *nobatch));
  }
  return checks;
}

}  // namespace penstock::bench::effective
