#include "sim/trace/shape_trace.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace penstock::sim {
namespace {

// std::mt19937_64 gives the same numbers everywhere. The standard distributions do not.
std::uint32_t Draw(std::mt19937_64& random, LengthRange range) {
  return range.low + static_cast<std::uint32_t>(random() % (range.high - range.low + 1));
}

double Exponential(std::mt19937_64& random, double per_second) {
  const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;  // [0, 1)
  return -std::log1p(-uniform) / per_second;
}

Duration Seconds(double seconds) { return Duration(std::llround(seconds * 1e9)); }

}  // namespace

Trace UniformTrace(std::uint32_t requests, LengthRange prompt, LengthRange output,
                   std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Trace trace;
  trace.requests.resize(requests);
  for (TraceRequest& request : trace.requests) {
    request.prompt_tokens = Draw(random, prompt);
    request.output_tokens = Draw(random, output);
  }
  return trace;
}

void ArriveAtRate(Trace& trace, double per_second, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  double at = 0;
  for (TraceRequest& request : trace.requests) {
    at += Exponential(random, per_second);
    request.arrival = Seconds(at);
  }
}

Trace Resample(const Trace& trace, std::uint32_t requests, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Trace drawn;
  drawn.block_tokens = trace.block_tokens;
  drawn.requests.reserve(requests);
  for (std::uint32_t i = 0; i < requests; ++i) {
    drawn.requests.push_back(trace.requests[random() % trace.requests.size()]);
    drawn.requests.back().arrival = Duration(0);
  }
  return drawn;
}

void ScaleTime(Trace& trace, double factor) {
  for (TraceRequest& request : trace.requests) {
    request.arrival = Duration(std::llround(static_cast<double>(request.arrival.count()) * factor));
  }
}

void SpreadStamps(Trace& trace, Duration window) {
  auto run = trace.requests.begin();
  while (run != trace.requests.end()) {
    const Duration stamp = run->arrival;
    const auto end = std::find_if(run, trace.requests.end(), [stamp](const TraceRequest& request) {
      return request.arrival != stamp;
    });
    const Duration room =
        end == trace.requests.end() ? window : std::min(window, end->arrival - stamp);
    const auto size = end - run;
    for (auto i = decltype(size){0}; i < size; ++i) run[i].arrival = stamp + room * i / size;
    run = end;
  }
}

void CountWholeBlocks(Trace& trace, std::uint32_t block_tokens) {
  trace.block_tokens = block_tokens;
  for (TraceRequest& request : trace.requests) {
    request.prompt_tokens = static_cast<std::uint32_t>(request.blocks.size()) * block_tokens + 1;
  }
}

}  // namespace penstock::sim
