// The figures of GET /stats: the four of effective-batching, by its formulas, and the server's own.
//
// e_i is the time of request i, from the arrival of its head to the end of its answer, in seconds.
// n_i is the number of its generated tokens. Then latency-per-token is the mean of e_i / n_i.
// throughput is sum n_i / sum e_i, total-tokens-handled is sum n_i, total-elapsed-time is sum e_i.
//
// `throughput` adds up latencies that overlap, so it is the speed of one request, not of the
// server; tokens-per-second is the server's. Memory is bounded. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "router/api/effective/latency_histogram.h"

namespace penstock::router::effective {

struct FinishedRequest {
  Time arrived;
  Time ended;
  std::uint32_t tokens = 0;
  Duration first_token{0};          // since arrival
  std::vector<Duration> gaps;       // between tokens
  std::optional<Duration> delayed;  // intended arrival to arrival, where the client told
};

class StatsBook {
 public:
  // A request was accepted. Pass the result to End or Fail: requests accepted before a reset do not
  // count.
  std::uint64_t Begin(Time arrived);
  void End(std::uint64_t era, const FinishedRequest& request);
  void Fail(std::uint64_t era);  // refused later, failed, or its client left

  void Reset();
  // `batching`: the batching mode of the server; it is only shown.
  std::string ToJson(std::string_view batching) const;

 private:
  // The most values of num_tokens that have their own mean. Further values count in the sums only.
  static constexpr std::size_t kMaxBreakdown = 4096;
  struct Mean {
    std::uint64_t count = 0;
    double seconds = 0;
  };
  struct Totals {
    std::uint64_t requests = 0;
    std::uint64_t failed = 0;
    std::uint64_t tokens = 0;
    double per_token_seconds = 0;  // sum of e_i / n_i
    std::optional<Time> first_arrival;
    Time last_end;
    LatencyHistogram latency, from_intended, first_token, gap;
    std::map<std::uint32_t, Mean> breakdown;
  };

  mutable std::mutex mutex_;
  std::uint64_t era_ = 0;
  std::uint64_t in_flight_ = 0;
  Totals totals_;
};

}  // namespace penstock::router::effective
