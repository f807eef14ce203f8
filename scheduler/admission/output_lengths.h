// How long the output of a request is expected to be. Optimistic admission reserves by it.
//
// The first that exists of:
//   the client's forecast (Arrival::predicted_tokens)
//   a quantile over finished requests of the same group, when there are at least kEnough of them
//   the table:
//
//   request class     max_new_tokens given    not given (all that fits)
//   any               3/4 of it               a quarter of what fits, at most 256
//   OpenAI chat       3/4 of it               a quarter of what fits, at most 512
//
// Finished requests are grouped by request class and by whether the client gave a length. If it
// did, the used share of it is counted, in sixteenths. Otherwise the length is counted, in buckets
// that are at most a quarter wide. For a request with n tokens of output, only longer outputs
// count. After kForget requests all counts are halved, so that old ones fade.
//
// Integer arithmetic: the same history gives the same expectation everywhere. Not synchronised.
#pragma once

#include <array>
#include <cstdint>

#include "scheduler/input.h"

namespace penstock::scheduler {

class OutputLengths {
 public:
  static constexpr std::uint32_t kEnough = 32;
  static constexpr std::uint32_t kForget = 4096;
  // The quantile, in percent. Most requests stay below it, so that few are preempted.
  static constexpr std::uint32_t kPercent = 80;

  // Output tokens that the request is expected to have in total: more than `generated`, at most
  // max_new_tokens.
  std::uint32_t Expect(const Arrival& request, std::uint32_t generated) const;

  // Records a request that ended normally after `generated` tokens.
  void Learn(const Arrival& request, std::uint32_t generated);

  static std::uint32_t TableValue(const Arrival& request);

 private:
  static constexpr std::size_t kBuckets = 128;
  struct Histogram {
    std::array<std::uint32_t, kBuckets> counts{};
    std::uint32_t total = 0;
  };

  static std::size_t BucketOf(const Arrival& request, std::uint32_t length);
  // The largest length of a bucket.
  static std::uint32_t LengthOf(const Arrival& request, std::size_t bucket);
  static std::size_t ClassOf(const Arrival& request);

  static constexpr std::size_t kClasses = 10;
  std::array<Histogram, kClasses> classes_;
};

}  // namespace penstock::scheduler
