#include "router/api/effective/stats_book.h"

#include <algorithm>
#include <chrono>

#include "router/json/writer.h"

namespace penstock::router::effective {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

double Ratio(double sum, double by) { return by > 0 ? sum / by : 0; }

void AppendDouble(std::string& out, std::string_view key, double value) {
  json::AppendString(out, key);
  out += ':';
  json::AppendDouble(out, value);
}

void AppendCount(std::string& out, std::string_view key, std::uint64_t value) {
  json::AppendString(out, key);
  out += ':';
  json::AppendInteger(out, value);
}

void AppendSpread(std::string& out, std::string_view key, const LatencyHistogram& histogram) {
  const Percentiles p = histogram.Seconds();
  json::AppendString(out, key);
  out += ":{";
  AppendCount(out, "count", histogram.count());
  const std::pair<std::string_view, double> values[] = {
      {"mean", p.mean}, {"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"max", p.max}};
  for (const auto& [name, value] : values) {
    out += ',';
    AppendDouble(out, name, value);
  }
  out += '}';
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
  std::string out = "{";
  AppendOriginal(out);
  out += ",\"batching\":";
  json::AppendString(out, batching);
  AppendHonest(out);
  AppendBreakdown(out);
  return out + "}";
}

void StatsBook::AppendOriginal(std::string& out) const {
  const double elapsed = totals_.latency.SumSeconds();
  const auto tokens = static_cast<double>(totals_.tokens);
  AppendDouble(out, "latency-per-token",
               Ratio(totals_.per_token_seconds, static_cast<double>(totals_.requests)));
  out += ',';
  AppendDouble(out, "throughput", Ratio(tokens, elapsed));
  out += ',';
  AppendCount(out, "total-tokens-handled", totals_.tokens);
  out += ',';
  AppendDouble(out, "total-elapsed-time", elapsed);
}

void StatsBook::AppendHonest(std::string& out) const {
  double wall = 0;
  if (totals_.requests > 0) wall = Seconds(totals_.last_end - *totals_.first_arrival);
  out += ',';
  AppendCount(out, "requests", totals_.requests);
  out += ',';
  AppendCount(out, "failed", totals_.failed);
  out += ',';
  AppendCount(out, "in-flight", in_flight_);
  out += ',';
  AppendDouble(out, "wall-clock-seconds", wall);
  out += ',';
  AppendDouble(out, "tokens-per-second", Ratio(static_cast<double>(totals_.tokens), wall));
  out += ',';
  AppendDouble(out, "requests-per-second", Ratio(static_cast<double>(totals_.requests), wall));
  const std::pair<std::string_view, const LatencyHistogram*> spreads[] = {
      {"latency-seconds", &totals_.latency},
      {"latency-from-intended-arrival-seconds", &totals_.from_intended},
      {"time-to-first-token-seconds", &totals_.first_token},
      {"inter-token-latency-seconds", &totals_.gap}};
  for (const auto& [key, histogram] : spreads) {
    out += ',';
    AppendSpread(out, key, *histogram);
  }
}

// The mean of e_i for each n_i. The original writes it into a file.
void StatsBook::AppendBreakdown(std::string& out) const {
  out += ",\"breakdown\":{";
  bool first = true;
  for (const auto& [tokens, mean] : totals_.breakdown) {
    if (!first) out += ',';
    first = false;
    AppendDouble(out, std::to_string(tokens), mean.seconds / static_cast<double>(mean.count));
  }
  out += '}';
}

}  // namespace penstock::router::effective
