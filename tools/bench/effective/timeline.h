// Says which request was in which step. It runs the core again on an input log (penstock-router
// --record), which gives the same plans (guarantee G9).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::bench::effective {

struct TimelineStep {
  double begin = 0;  // seconds since the first arrival: when the shard could begin it
  double end = 0;    // when its result came
  std::vector<std::uint32_t> prompts;  // who had prompt tokens in it; numbers of TimelineRequest
  std::vector<std::uint32_t> decodes;  // who had a decode row
};

struct TimelineRequest {
  double arrival = 0;
  std::uint32_t num_tokens = 0;
};

struct BatchTimeline {
  std::vector<TimelineRequest> requests;  // in the order of `ids`
  std::vector<std::uint32_t> by_arrival;  // their numbers, as they reached the server
  std::vector<TimelineStep> steps;        // those with one of them, in order
  double end = 0;
};

// `ids`: the server's numbers of the requests of one run; others are left out.
absl::StatusOr<BatchTimeline> ReadTimeline(std::string_view log,
                                           const std::vector<std::uint64_t>& ids);

}  // namespace penstock::bench::effective
