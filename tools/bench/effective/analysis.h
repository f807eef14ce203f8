// Summaries of the runs of one mode, and checks that the modes differ as expected. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/percentiles.h"
#include "tools/bench/effective/client.h"

namespace penstock::bench::effective {

struct ModeRuns {
  std::string mode;            // nobatch, static, dynamic
  std::vector<TraceRun> runs;  // one per repeat
};

// All requests whose number of tokens lies in one interval.
struct Bucket {
  double num_tokens = 0;  // middle of the interval
  std::uint64_t count = 0;
  double mean = 0;  // seconds
  // 95 % confidence interval of the mean, from the means of the repeats, which are independent.
  // Both are the mean if fewer than two repeats have the bucket.
  double low = 0;
  double high = 0;
};

struct Line {
  double slope = 0;  // seconds per token
  double intercept = 0;
  double r = 0;
};

// effective-batching's four figures, from the latencies that the server measured.
struct OriginalStats {
  double latency_per_token = 0;
  double throughput = 0;
  std::uint64_t tokens = 0;
  double elapsed = 0;
};

struct ModeSummary {
  std::string mode;
  std::uint64_t requests = 0;
  std::uint64_t failed = 0;
  std::string first_error;
  OriginalStats original;
  // From the intended arrival, in seconds.
  Percentiles latency;
  Percentiles first_token;
  Percentiles inter_token;  // mean gap of each request, in seconds
  double per_token = 0;     // mean of latency / tokens
  double tokens_per_second = 0;
  double requests_per_second = 0;
  std::vector<Bucket> buckets;  // one for each length
  Line line;                    // over the buckets' means
};

ModeSummary Summarise(const ModeRuns& runs);
// By intervals of `width` lengths: 1 to `width`, then the next ones. 1: a bucket for each length.
std::vector<Bucket> Buckets(const ModeRuns& runs, std::uint32_t width);
Line Fit(const std::vector<Bucket>& buckets);

struct Check {
  std::string what;      // "dynamic: latency is a straight line through 0"
  std::string measured;  // the numbers
  bool passed = false;
};

// What the comparison should show. Only for modes that ran.
std::vector<Check> Compare(const std::vector<ModeRuns>& runs,
                           const std::vector<ModeSummary>& summaries);

}  // namespace penstock::bench::effective
