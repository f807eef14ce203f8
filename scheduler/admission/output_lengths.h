// How long an answer is expected to be: optimistic admission reserves by it.
//
// In this order:
//   the client's forecast (Arrival::predicted_tokens)
//   what was learned: a quantile over the newest finished requests of the same class, once there
//   are kEnough of them
//   the table below
//
//   dialect              max_new_tokens given    not given (all that fits)
//   any                  3/4 of it               a quarter of what fits, at most 256
//   OpenAI chat          3/4 of it               a quarter of what fits, at most 512
//
// A class is (dialect, length given or not). Where the length was given the share of it that was
// used is learned, in sixteenths; otherwise the length itself, in buckets that are at most a
// quarter wide. Of a request that has generated n tokens already only longer answers are asked
// about. When kForget answers were counted all counts are halved: old ones fade.
//
// Integers only: the same history gives the same expectation everywhere. One owner.
#pragma once

#include <array>
#include <cstdint>

#include "scheduler/input.h"

namespace penstock::scheduler {

class OutputLengths {
 public:
  static constexpr std::uint32_t kEnough = 32;
  static constexpr std::uint32_t kForget = 4096;
  // The quantile that is expected, in percent: most fit into it, few have to be preempted.
  static constexpr std::uint32_t kPercent = 80;

  // Tokens that the request is expected to generate in all, above `generated`; at most
  // max_new_tokens.
  std::uint32_t Expect(const Arrival& request, std::uint32_t generated) const;

  // A request ended by itself (not by a cancel or an error).
  void Learn(const Arrival& request, std::uint32_t generated);

  static std::uint32_t TableValue(const Arrival& request);

 private:
  static constexpr std::size_t kBuckets = 128;
  struct Histogram {
    std::array<std::uint32_t, kBuckets> counts{};
    std::uint32_t total = 0;
  };

  static std::size_t BucketOf(const Arrival& request, std::uint32_t length);
  // The greatest length of a bucket.
  static std::uint32_t LengthOf(const Arrival& request, std::size_t bucket);
  static std::size_t ClassOf(const Arrival& request);

  static constexpr std::size_t kClasses = 10;
  std::array<Histogram, kClasses> classes_;
};

}  // namespace penstock::scheduler
