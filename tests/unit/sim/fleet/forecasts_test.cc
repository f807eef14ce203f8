#include "sim/fleet/forecasts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/trace/shape_trace.h"

namespace penstock::sim {
namespace {

TEST(Forecasts, WithoutNoiseTheyAreTheTrueLengths) {
  const Trace trace = UniformTrace(300, {1, 9}, {1, 5000}, 7);
  for (const ForecastError error : {ForecastError::kLength, ForecastError::kRank}) {
    const auto forecasts = Forecasts(trace, error, 0, 1);
    ASSERT_EQ(forecasts.size(), 300u);
    for (std::size_t i = 0; i < 300; ++i) {
      EXPECT_EQ(forecasts[i], trace.requests[i].output_tokens);
    }
    EXPECT_DOUBLE_EQ(TauOf(trace, forecasts), 1);
  }
}

TEST(Forecasts, MoreNoiseGivesALowerTau) {
  const Trace trace = UniformTrace(2000, {1, 9}, {1, 5000}, 7);
  for (const ForecastError error : {ForecastError::kLength, ForecastError::kRank}) {
    const double little = TauOf(trace, Forecasts(trace, error, 0.3, 1));
    const double much = TauOf(trace, Forecasts(trace, error, 1, 1));
    EXPECT_LT(little, 0.9);
    EXPECT_LT(much, little - 0.1);
    EXPECT_GT(much, 0.1);
    EXPECT_NEAR(TauOf(trace, Forecasts(trace, error, 100, 1)), 0, 0.06);
  }
}

TEST(Forecasts, WrongRanksHaveTheLengthsOfTheTrace) {
  const Trace trace = UniformTrace(500, {1, 9}, {1, 5000}, 7);
  auto forecasts = Forecasts(trace, ForecastError::kRank, 0.3, 1);
  std::vector<std::uint32_t> lengths;
  for (const TraceRequest& request : trace.requests) lengths.push_back(request.output_tokens);
  EXPECT_NE(forecasts, lengths);
  std::ranges::sort(forecasts);
  std::ranges::sort(lengths);
  EXPECT_EQ(forecasts, lengths);
}

TEST(Forecasts, TauCountsPairsAsKendallDid) {
  Trace trace;
  for (const std::uint32_t length : {1u, 2u, 3u, 3u}) {
    trace.requests.push_back({.output_tokens = length});
  }
  EXPECT_DOUBLE_EQ(TauOf(trace, {1, 2, 3, 3}), 1);
  EXPECT_DOUBLE_EQ(TauOf(trace, {3, 2, 1, 1}), -1);
  EXPECT_DOUBLE_EQ(TauOf(trace, {4, 4, 4, 4}), 0);
  // 5 pairs of lengths differ and 6 of forecasts. 4 agree and 1 does not.
  EXPECT_NEAR(TauOf(trace, {1, 3, 2, 4}), 3 / 5.477225575, 1e-9);
}

}  // namespace
}  // namespace penstock::sim
