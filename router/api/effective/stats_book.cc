#include "router/api/effective/stats_book.h"

#include <algorithm>
#include <chrono>

#include "router/json/writer.h"

namespace penstock::router::effective {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double Ratio(double sum, double by) { return by > 0 ? sum / by : 0; }

void AppendSpread(std::string& out, std::string_view key, const LatencyHistogram& histogram) {
  const Percentiles p = histogram.Seconds();
  json::AppendMembers(out, key,
                      json::Object("count", histogram.count(), "mean", p.mean, "p50", p.p50, "p90",
                                   p.p90, "p99", p.p99, "max", p.max));
}

}  // namespace

std::uint64_t StatsBook::Begin(Time arrived) {
  const std::lock_guard lock(mutex_);
  ++in_flight_;
  if (!totals_.first_arrival || arrived < *totals_.first_arrival) totals_.first_arrival = arrived;
  return era_;
}

void StatsBook::End(std::uint64_t era, const FinishedRequest& request) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  if (era != era_) return;
  const Duration latency = request.ended - request.arrived;
  ++totals_.requests;
  totals_.tokens += request.tokens;
  totals_.per_token_seconds += Seconds(latency) / request.tokens;
  totals_.last_end = std::max(totals_.last_end, request.ended);
  totals_.latency.Add(latency);
  totals_.first_token.Add(request.first_token);
  if (request.delayed) totals_.from_intended.Add(latency + *request.delayed);
  for (const Duration gap : request.gaps) totals_.gap.Add(gap);
  auto& breakdown = totals_.breakdown;
  if (breakdown.size() >= kMaxBreakdown && !breakdown.contains(request.tokens)) return;
  Mean& mean = breakdown[request.tokens];
  ++mean.count;
  mean.seconds += Seconds(latency);
}

void StatsBook::Fail(std::uint64_t era) {
  const std::lock_guard lock(mutex_);
  --in_flight_;
  if (era == era_) ++totals_.failed;
}

void StatsBook::Reset() {
  const std::lock_guard lock(mutex_);
  ++era_;
  totals_ = Totals();
}

std::string StatsBook::ToJson(std::string_view batching) const {
  const std::lock_guard lock(mutex_);
  const double elapsed = totals_.latency.SumSeconds();
  const auto tokens = static_cast<double>(totals_.tokens);
  const auto requests = static_cast<double>(totals_.requests);
  double wall = 0;
  if (totals_.requests > 0) wall = Seconds(totals_.last_end - *totals_.first_arrival);
  std::string out = "{";
  json::AppendMembers(out, "latency-per-token", Ratio(totals_.per_token_seconds, requests),
                      "throughput", Ratio(tokens, elapsed), "total-tokens-handled", totals_.tokens,
                      "total-elapsed-time", elapsed, "batching", batching, "requests",
                      totals_.requests, "failed", totals_.failed, "in-flight", in_flight_,
                      "wall-clock-seconds", wall, "tokens-per-second", Ratio(tokens, wall),
                      "requests-per-second", Ratio(requests, wall));
  AppendSpread(out, "latency-seconds", totals_.latency);
  AppendSpread(out, "latency-from-intended-arrival-seconds", totals_.from_intended);
  AppendSpread(out, "time-to-first-token-seconds", totals_.first_token);
  AppendSpread(out, "inter-token-latency-seconds", totals_.gap);
  // The mean of e_i for each n_i. The original writes it into a file.
  out += ",\"breakdown\":{";
  for (const auto& [n, mean] : totals_.breakdown) {
    json::AppendMembers(out, std::to_string(n), mean.seconds / static_cast<double>(mean.count));
  }
  return out + "}}";
}

}  // namespace penstock::router::effective
