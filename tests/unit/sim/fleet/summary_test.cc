#include "sim/fleet/summary.h"

#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

using std::chrono::milliseconds;

RequestRecord Record(int ttft_ms, int end_ms, std::uint32_t tokens, int gap_ms) {
  RequestRecord record;
  record.arrival = milliseconds(1000);
  record.first_token = milliseconds(1000 + ttft_ms);
  record.end = milliseconds(1000 + end_ms);
  record.worst_gap = milliseconds(gap_ms);
  record.prompt_tokens = 10;
  record.output_tokens = tokens;
  return record;
}

TEST(Objective, EveryGivenBoundMustHold) {
  const RequestRecord record = Record(100, 400, 4, 50);
  EXPECT_TRUE(Objective{}.Met(record));
  EXPECT_TRUE((Objective{milliseconds(100), milliseconds(50), milliseconds(100)}.Met(record)));
  EXPECT_FALSE((Objective{milliseconds(99), {}, {}}.Met(record)));
  EXPECT_FALSE((Objective{{}, milliseconds(49), {}}.Met(record)));
  EXPECT_FALSE((Objective{{}, {}, milliseconds(99)}.Met(record)));
  EXPECT_FALSE(Objective{}.Met(RequestRecord{}));
}

TEST(Summarise, FailedRequestsLowerAttainment) {
  FleetResult result;
  result.requests = {Record(100, 400, 4, 50), Record(300, 400, 1, 0), RequestRecord{}};
  result.requests[0].cached_tokens = 5;
  result.requests[1].preemptions = 2;
  result.computed_tokens = {30, 10};
  result.end = milliseconds(2000);
  const Summary summary = Summarise(result, Objective{milliseconds(200), {}, {}});
  EXPECT_EQ(summary.failed, 1u);
  EXPECT_DOUBLE_EQ(summary.attainment, 1.0 / 3);
  EXPECT_DOUBLE_EQ(summary.goodput, 0.5);
  EXPECT_DOUBLE_EQ(summary.requests_per_second, 1);
  EXPECT_DOUBLE_EQ(summary.tokens_per_second, 2.5);
  EXPECT_DOUBLE_EQ(summary.hit_rate, 0.25);
  EXPECT_DOUBLE_EQ(summary.imbalance, 1.5);
  EXPECT_EQ(summary.preemptions, 2u);
  EXPECT_DOUBLE_EQ(summary.ttft_ms.p50, 100);
  EXPECT_DOUBLE_EQ(summary.normalised_ms.max, 400);
}

TEST(HighestGood, FindsTheThreshold) {
  const auto below = [](double bound) { return [bound](double x) { return x <= bound; }; };
  EXPECT_NEAR(*HighestGood(0.1, 1000, 0.01, below(20)), 20, 0.21);
  EXPECT_EQ(HighestGood(0.1, 10, 0.01, below(20)), 10);
  EXPECT_FALSE(HighestGood(0.1, 10, 0.01, below(0.05)));
}

}  // namespace
}  // namespace penstock::sim
