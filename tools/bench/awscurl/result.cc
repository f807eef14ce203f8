#include "tools/bench/awscurl/result.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <cmath>
#include <numeric>

#include "common/json_text.h"

namespace penstock::bench::awscurl {
namespace {

double At(const std::vector<double>& sorted, double share) {
  const auto index = static_cast<std::size_t>(static_cast<double>(sorted.size()) * share);
  return sorted[std::min(index, sorted.size() - 1)];
}

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

double Rounded(double value) { return std::round(value * 100) / 100; }

}  // namespace

double Result::ErrorRate() const {
  return requests == 0 ? 0 : 100.0 * static_cast<double>(failed) / static_cast<double>(requests);
}

Result MakeResult(const std::vector<Reply>& replies, std::uint32_t clients, double total_ms,
                  const std::string& tokenizer) {
  Result result;
  result.tokenizer = tokenizer;
  result.total_ms = total_ms;
  result.clients = clients;
  result.requests = replies.size();
  std::vector<double> latencies;
  std::vector<double> first_bytes;
  for (const Reply& reply : replies) {
    if (reply.failed) {
      if (result.failed++ == 0) result.first_error = reply.error;
      continue;
    }
    latencies.push_back(reply.latency_ms);
    first_bytes.push_back(reply.first_byte_ms);
    result.tokens += reply.tokens;
  }
  if (latencies.empty()) return result;
  const double sum = Sum(latencies);
  const auto good = static_cast<double>(latencies.size());
  const auto tokens = static_cast<double>(result.tokens);
  const double seconds = sum / 1000 / clients;
  result.tps = good / seconds;
  result.token_throughput = tokens / seconds;
  result.wall_tps = good / total_ms * 1000;
  result.wall_token_throughput = tokens / total_ms * 1000;
  result.average_ms = sum / good;
  if (result.tokens > 0) result.average_token_ms = sum * clients / tokens;
  result.first_byte_ms = Sum(first_bytes) / good;
  std::sort(latencies.begin(), latencies.end());
  std::sort(first_bytes.begin(), first_bytes.end());
  result.p50_ms = At(latencies, 0.5);
  result.p90_ms = At(latencies, 0.9);
  result.p99_ms = At(latencies, 0.99);
  result.first_byte_p50_ms = At(first_bytes, 0.5);
  result.first_byte_p90_ms = At(first_bytes, 0.9);
  result.first_byte_p99_ms = At(first_bytes, 0.99);
  return result;
}

std::string ToText(const Result& r) {
  const char* unit = r.tokenizer.empty() ? "word" : "token";
  std::string out;
  absl::StrAppendFormat(&out, "Total time: %.2f ms.\n", r.total_ms);
  absl::StrAppendFormat(&out, "Non 200 responses: %u, error rate: %.2f\n", r.failed, r.ErrorRate());
  absl::StrAppendFormat(&out, "Concurrent clients: %u\n", r.clients);
  absl::StrAppendFormat(&out, "Total requests: %u\n", r.requests);
  if (r.failed < r.requests) {
    absl::StrAppendFormat(&out, "TPS: %.2f/s\n", r.tps);
    absl::StrAppendFormat(&out, "Average Token Latency: %.2f ms.\n", r.average_token_ms);
    absl::StrAppendFormat(&out, "Average Latency: %.2f ms.\n", r.average_ms);
    absl::StrAppendFormat(&out, "P50: %.2f ms.\n", r.p50_ms);
    absl::StrAppendFormat(&out, "P90: %.2f ms.\n", r.p90_ms);
    absl::StrAppendFormat(&out, "P99: %.2f ms.\n", r.p99_ms);
  }
  if (r.tokens > 0) {
    absl::StrAppendFormat(&out, "Total %s: %u\n", unit, r.tokens);
    absl::StrAppendFormat(&out, "%s/req: %u\n", unit, r.tokens / r.requests);
    absl::StrAppendFormat(&out, "%s/s: %.2f/s\n", unit, r.token_throughput);
  }
  absl::StrAppendFormat(&out, "Time to first byte: %.2f ms.\n", r.first_byte_ms);
  absl::StrAppendFormat(&out, "TTFB_P50: %.2f ms.\n", r.first_byte_p50_ms);
  absl::StrAppendFormat(&out, "TTFB_P90: %.2f ms.\n", r.first_byte_p90_ms);
  absl::StrAppendFormat(&out, "TTFB_P99: %.2f ms.\n", r.first_byte_p99_ms);
  absl::StrAppendFormat(&out, "By the clock: %.2f requests/s, %.2f %s/s\n", r.wall_tps,
                        r.wall_token_throughput, unit);
  if (!r.first_error.empty())
    absl::StrAppendFormat(&out, "First error: %s\n", r.first_error.c_str());
  return out;
}

std::string ToJson(const Result& r) {
  boost::json::object object = {{"totalTimeMills", Rounded(r.total_ms)},
                                {"totalRequests", r.requests},
                                {"failedRequests", r.failed},
                                {"errorRate", Rounded(r.ErrorRate())},
                                {"concurrentClients", r.clients},
                                {"tps", Rounded(r.tps)},
                                {"tokenThroughput", Rounded(r.token_throughput)},
                                {"totalTokens", r.tokens},
                                {"tokenPerRequest", r.requests == 0 ? 0 : r.tokens / r.requests},
                                {"averageLatency", Rounded(r.average_ms)},
                                {"averageTokenLatency", Rounded(r.average_token_ms)},
                                {"p50Latency", Rounded(r.p50_ms)},
                                {"p90Latency", Rounded(r.p90_ms)},
                                {"p99Latency", Rounded(r.p99_ms)},
                                {"timeToFirstByte", Rounded(r.first_byte_ms)},
                                {"p50TimeToFirstByte", Rounded(r.first_byte_p50_ms)},
                                {"p90TimeToFirstByte", Rounded(r.first_byte_p90_ms)},
                                {"p99TimeToFirstByte", Rounded(r.first_byte_p99_ms)},
                                {"wallClockTps", Rounded(r.wall_tps)},
                                {"wallClockTokenThroughput", Rounded(r.wall_token_throughput)}};
  if (!r.tokenizer.empty()) object["tokenizer"] = r.tokenizer;
  if (!r.first_error.empty()) object["firstError"] = r.first_error;
  return JsonText(object);
}

}  // namespace penstock::bench::awscurl
