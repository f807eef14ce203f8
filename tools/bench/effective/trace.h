// Makes the requests of one run from a preset and a seed. Pure functions: the same seed gives the
// same trace, which is replayed to every mode.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::bench::effective {

// The workloads of effective-batching's client, from three versions of it.
//   recorded  The runs of its published plots. Bursts of five with uniform gaps. Output lengths 5,
//             10, … 145 tokens, ten of each, shuffled and cut to the number of samples.
//   readme    The workload of its README's table. About one request a second. Output lengths from a
//             normal distribution, within 1 to 200 tokens.
//   head      The workload of its last version. Uniform gaps, output lengths from a list.
enum class Preset : std::uint8_t { kRecorded, kReadme, kHead };
enum class Selection : std::uint8_t { kRandom, kDescend };

struct TraceShape {
  Preset preset = Preset::kRecorded;
  std::uint32_t samples = 100;
  double rate = 0;  // requests per second; 0 = the preset's own
  double wait = 1;  // head's own rate: the longest gap in seconds
  // Output lengths to draw from instead of the preset's. The preset head has {1, 25, 100}.
  std::vector<std::uint32_t> num_tokens = {};
  Selection selection = Selection::kRandom;  // kDescend: longest first
  std::uint64_t seed = 1;
};

struct TraceRequest {
  double arrival = 0;  // seconds since the run began
  std::string prompt;  // "Request i"
  std::uint32_t num_tokens = 0;
  std::uint64_t seed = 0;  // of its sampling
};

double RateOf(const TraceShape& shape);  // requests per second, as asked for or the preset's
std::vector<TraceRequest> MakeTrace(const TraceShape& shape);

}  // namespace penstock::bench::effective
