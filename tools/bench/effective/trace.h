// Makes the requests of one run from a preset and a seed. Pure functions: the same seed gives the
// same trace, which is replayed to every mode.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::bench::effective {

// The workloads of effective-batching's client, from three versions of it.
//   recorded  The runs of its published plots. Bursts of five with uniform gaps; 5, 10, … 145
//             tokens, ten of each shuffled and cut.
//   readme    Its table. About a request a second, tokens normal within 1 to 200.
//   head      Its last version. Uniform gaps, tokens from a list.
enum class Preset : std::uint8_t { kRecorded, kReadme, kHead };
enum class Selection : std::uint8_t { kRandom, kDescend };

struct TraceShape {
  Preset preset = Preset::kRecorded;
  std::uint32_t samples = 100;
  double rate = 0;  // requests per second; 0 = the preset's own
  double wait = 1;  // head's own rate: the longest gap in seconds
  // Drawn from instead of the preset's lengths; head has {1, 25, 100} of its own.
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
