// The report of a run as awscurl prints it. Its rates are estimates for a closed loop that is never
// idle: successes / sum of their latencies x clients. The rates by the clock are printed as well.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::bench::awscurl {

struct Reply {
  double latency_ms = 0;
  double first_byte_ms = 0;
  std::uint64_t tokens = 0;
  bool failed = false;  // a status from 300 on, no answer, or a body that is not what its type says
  std::string error;    // why, of a failed one
};

struct Result {
  std::string tokenizer;  // empty: words
  double total_ms = 0;
  std::uint64_t requests = 0;
  std::uint64_t failed = 0;
  std::uint32_t clients = 0;
  std::uint64_t tokens = 0;
  double tps = 0, token_throughput = 0;  // awscurl's
  double wall_tps = 0, wall_token_throughput = 0;
  double average_ms = 0, average_token_ms = 0;
  double p50_ms = 0, p90_ms = 0, p99_ms = 0;
  double first_byte_ms = 0, first_byte_p50_ms = 0, first_byte_p90_ms = 0, first_byte_p99_ms = 0;
  std::string first_error;

  double ErrorRate() const;  // percent
};

Result MakeResult(const std::vector<Reply>& replies, std::uint32_t clients, double total_ms,
                  const std::string& tokenizer);

std::string ToText(const Result& result);
std::string ToJson(const Result& result);  // with awscurl's keys

}  // namespace penstock::bench::awscurl
