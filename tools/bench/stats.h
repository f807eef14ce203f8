// Latencies of a run and their summary. TTFT is arrival to first token. Inter-token latency is the
// gap between two token events of one stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "common/percentiles.h"
#include "tools/bench/load_options.h"

namespace penstock::bench {

using Clock = std::chrono::steady_clock;

struct RequestRecord {
  Clock::time_point arrival;  // when the load shape wanted it, not when it was sent
  std::vector<Clock::time_point> token_events;
  Clock::time_point end;
  std::uint32_t tokens = 0;  // by the server's count, else the number of token events
  std::string error;         // empty: succeeded
};

struct RunReport {
  std::uint64_t requests = 0;
  std::uint64_t failures = 0;
  std::string first_error;
  std::uint64_t tokens = 0;
  double seconds = 0;
  Percentiles ttft, inter_token, end_to_end;  // ms
  double server_cpu_seconds = 0;              // of --server-pid processes
};

RunReport MakeReport(const std::vector<RequestRecord>& records, double seconds,
                     double server_cpu_seconds);

std::string ToJson(const LoadOptions& config, const RunReport& report);
// A few lines to read.
std::string ToTable(const RunReport& report);

}  // namespace penstock::bench
