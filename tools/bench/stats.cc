#include "tools/bench/stats.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>

#include "common/json_text.h"

namespace penstock::bench {
namespace {

namespace json = boost::json;

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

json::object ToObject(const Percentiles& p) {
  return {{"mean_ms", p.mean},
          {"p50_ms", p.p50},
          {"p90_ms", p.p90},
          {"p99_ms", p.p99},
          {"max_ms", p.max}};
}

std::string_view Name(Api api) {
  switch (api) {
    case Api::kTgi:
      return "tgi";
    case Api::kOpenAiChat:
      return "openai-chat";
    case Api::kOpenAiCompletions:
      return "openai-completions";
  }
  return "";
}

double PerSecond(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

RunReport MakeReport(const std::vector<RequestRecord>& records, double seconds,
                     double server_cpu_seconds) {
  RunReport report;
  report.seconds = seconds;
  report.server_cpu_seconds = server_cpu_seconds;
  std::vector<double> first, gaps, total;
  for (const RequestRecord& record : records) {
    ++report.requests;
    report.tokens += record.tokens;
    if (!record.error.empty()) {
      ++report.failures;
      if (report.first_error.empty()) report.first_error = record.error;
      continue;
    }
    total.push_back(Milliseconds(record.end - record.arrival));
    if (record.token_events.empty()) continue;
    first.push_back(Milliseconds(record.token_events.front() - record.arrival));
    for (std::size_t i = 1; i < record.token_events.size(); ++i) {
      gaps.push_back(Milliseconds(record.token_events[i] - record.token_events[i - 1]));
    }
  }
  report.ttft = Summarise(std::move(first));
  report.inter_token = Summarise(std::move(gaps));
  report.end_to_end = Summarise(std::move(total));
  return report;
}

std::string ToTable(const RunReport& report) {
  std::string text = absl::StrFormat(
      "%u requests, %u failed, in %.2f s: %.2f requests/s, %u tokens, %.1f tokens/s\n",
      report.requests, report.failures, report.seconds,
      PerSecond(report.requests - report.failures, report.seconds), report.tokens,
      PerSecond(report.tokens, report.seconds));
  absl::StrAppendFormat(&text, "%-24s %9s %9s %9s %9s %9s\n", "ms", "mean", "p50", "p90", "p99",
                        "max");
  const std::pair<const char*, const Percentiles&> rows[] = {
      {"time to first token", report.ttft},
      {"between two tokens", report.inter_token},
      {"whole request", report.end_to_end}};
  for (const auto& [name, p] : rows) {
    absl::StrAppendFormat(&text, "%-24s %9.2f %9.2f %9.2f %9.2f %9.2f\n", name, p.mean, p.p50,
                          p.p90, p.p99, p.max);
  }
  if (!report.first_error.empty()) text += "first failure: " + report.first_error + "\n";
  return text;
}

std::string ToJson(const LoadOptions& config, const RunReport& report) {
  json::object load = {{"api", Name(config.api)},
                       {"mode", config.rate > 0 ? "open-loop" : "closed-loop"},
                       {"rate", config.rate},
                       {"concurrency", config.concurrency},
                       {"max_new_tokens", config.max_new_tokens},
                       {"seed", config.seed}};
  json::object result = {
      {"load", load},
      {"requests", report.requests},
      {"failures", report.failures},
      {"seconds", report.seconds},
      {"requests_per_second", PerSecond(report.requests - report.failures, report.seconds)},
      {"tokens", report.tokens},
      {"tokens_per_second", PerSecond(report.tokens, report.seconds)},
      {"ttft", ToObject(report.ttft)},
      {"inter_token_latency", ToObject(report.inter_token)},
      {"end_to_end", ToObject(report.end_to_end)}};
  if (!report.first_error.empty()) result["first_error"] = report.first_error;
  if (!config.server_pids.empty()) {
    result["server_cpu_seconds"] = report.server_cpu_seconds;
    result["server_cpu_us_per_token"] =
        report.tokens > 0 ? 1e6 * report.server_cpu_seconds / static_cast<double>(report.tokens)
                          : 0.0;
  }
  return JsonText(result);
}

}  // namespace penstock::bench
