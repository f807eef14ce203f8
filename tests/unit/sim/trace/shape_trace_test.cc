#include "sim/trace/shape_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace penstock::sim {
namespace {

TEST(ShapeTrace, UniformLengthsCoverTheirRangeAndRepeatWithTheSeed) {
  const Trace trace = UniformTrace(4000, {32, 512}, {1, 128}, 7);
  const auto [low, high] = std::minmax_element(
      trace.requests.begin(), trace.requests.end(),
      [](const auto& a, const auto& b) { return a.output_tokens < b.output_tokens; });
  EXPECT_EQ(low->output_tokens, 1u);
  EXPECT_EQ(high->output_tokens, 128u);
  double prompt = 0;
  for (const TraceRequest& request : trace.requests) {
    EXPECT_GE(request.prompt_tokens, 32u);
    EXPECT_LE(request.prompt_tokens, 512u);
    prompt += request.prompt_tokens;
  }
  EXPECT_NEAR(prompt / 4000, 272, 7);
  const Trace again = UniformTrace(4000, {32, 512}, {1, 128}, 7);
  EXPECT_EQ(again.requests[3999].prompt_tokens, trace.requests[3999].prompt_tokens);
}

TEST(ShapeTrace, PoissonArrivalsHaveTheirRateAndItsSpread) {
  Trace trace = UniformTrace(20000, {1, 1}, {1, 1}, 1);
  ArriveAtRate(trace, 50, 3);
  EXPECT_NEAR(std::chrono::duration<double>(trace.requests.back().arrival).count(), 400, 10);
  double squares = 0;
  for (std::size_t i = 1; i < trace.requests.size(); ++i) {
    const auto gap = trace.requests[i].arrival - trace.requests[i - 1].arrival;
    ASSERT_GE(gap, Duration(0));
    const double seconds = std::chrono::duration<double>(gap).count();
    squares += seconds * seconds;
  }
  EXPECT_NEAR(squares / 20000, 2 / (50.0 * 50.0), 1e-4);  // E[x²] of an exponential
}

TEST(ShapeTrace, EqualTimesAreSpreadUntilTheNextOne) {
  Trace trace = UniformTrace(5, {1, 1}, {1, 1}, 1);
  using std::chrono::seconds;
  trace.requests[2].arrival = trace.requests[3].arrival = seconds(2);
  trace.requests[4].arrival = seconds(20);
  SpreadStamps(trace, seconds(3));
  EXPECT_EQ(trace.requests[0].arrival, seconds(0));
  EXPECT_EQ(trace.requests[1].arrival, seconds(1));
  EXPECT_EQ(trace.requests[2].arrival, seconds(2));
  EXPECT_EQ(trace.requests[3].arrival, Duration(3'500'000'000));
  EXPECT_EQ(trace.requests[4].arrival, seconds(20));
}

TEST(ShapeTrace, ResamplingKeepsLengthsTogether) {
  Trace trace = UniformTrace(3, {1, 100}, {1, 1}, 5);
  for (TraceRequest& request : trace.requests) request.output_tokens = request.prompt_tokens + 1;
  for (const TraceRequest& request : Resample(trace, 100, 9).requests) {
    EXPECT_EQ(request.output_tokens, request.prompt_tokens + 1);
  }
}

TEST(ShapeTrace, WholeBlocksLeaveOneTokenToCompute) {
  Trace trace;
  trace.requests.resize(2);
  trace.requests[0].blocks = trace.requests[1].blocks = {4, 5};
  CountWholeBlocks(trace, 16);
  const auto first = MakePrompt(trace, 0);
  const auto second = MakePrompt(trace, 1);
  ASSERT_EQ(first.size(), 33u);
  EXPECT_TRUE(std::equal(first.begin(), first.begin() + 32, second.begin()));
  EXPECT_NE(first[32], second[32]);
}

}  // namespace
}  // namespace penstock::sim
