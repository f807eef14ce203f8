#include "scheduler/admission/output_lengths.h"

#include <gtest/gtest.h>

namespace penstock::scheduler {
namespace {

Arrival Request(std::uint32_t most, bool given, RequestClass request_class = RequestClass::kTgi) {
  Arrival arrival;
  arrival.max_new_tokens = most;
  arrival.length_given = given;
  arrival.request_class = request_class;
  return arrival;
}

TEST(OutputLengths, WithoutFinishedRequestsTheTableCounts) {
  const OutputLengths lengths;
  EXPECT_EQ(lengths.Expect(Request(100, true), 0), 75u);
  EXPECT_EQ(lengths.Expect(Request(1, true), 0), 1u);
  EXPECT_EQ(lengths.Expect(Request(4000, false), 0), 256u);
  EXPECT_EQ(lengths.Expect(Request(400, false), 0), 100u);
  EXPECT_EQ(lengths.Expect(Request(1, false), 0), 1u);
  EXPECT_EQ(lengths.Expect(Request(4000, false, RequestClass::kOpenAiChat), 0), 512u);
}

TEST(OutputLengths, TheClientsForecastCountsFirst) {
  const OutputLengths lengths;
  Arrival arrival = Request(100, true);
  arrival.predicted_tokens = 30;
  EXPECT_EQ(lengths.Expect(arrival, 0), 30u);
  arrival.predicted_tokens = 3000;
  EXPECT_EQ(lengths.Expect(arrival, 0), 100u);
}

TEST(OutputLengths, AnOutputAboveItsGuessIsExpectedToGrowByAQuarter) {
  const OutputLengths lengths;
  EXPECT_EQ(lengths.Expect(Request(4000, false), 256), 320u);
  EXPECT_EQ(lengths.Expect(Request(100, true), 99), 100u);
}

// The expectation is above the output so far and not above max_new_tokens.
TEST(OutputLengths, LearnsAQuantileForEachClass) {
  OutputLengths lengths;
  for (std::uint32_t i = 1; i <= 1000; ++i) lengths.Learn(Request(4000, false), i);
  const std::uint32_t expected = lengths.Expect(Request(4000, false), 0);
  EXPECT_GE(expected, 800u) << "80 % are no longer";
  EXPECT_LE(expected, 1000u) << "buckets are at most a quarter wide";
  EXPECT_EQ(lengths.Expect(Request(300, false), 0), 300u);
  EXPECT_EQ(lengths.Expect(Request(4000, false, RequestClass::kOpenAiChat), 0), 512u)
      << "another class";
  EXPECT_GE(lengths.Expect(Request(4000, false), 900), 980u) << "of those longer than 900";
  EXPECT_EQ(lengths.Expect(Request(4000, false), 2000), 4000u) << "longer than any seen";
}

TEST(OutputLengths, LearnsTheShareOfAGivenLength) {
  OutputLengths lengths;
  for (int i = 0; i < 100; ++i) lengths.Learn(Request(200, true), 50);
  EXPECT_EQ(lengths.Expect(Request(1000, true), 0), 250u);
  EXPECT_EQ(lengths.Expect(Request(8, true), 0), 2u);
}

TEST(OutputLengths, OldRequestsFade) {
  OutputLengths lengths;
  for (std::uint32_t i = 0; i < 4 * OutputLengths::kForget; ++i) {
    lengths.Learn(Request(4000, false), 2000);
  }
  for (std::uint32_t i = 0; i < 4 * OutputLengths::kForget; ++i) {
    lengths.Learn(Request(4000, false), 10);
  }
  EXPECT_LE(lengths.Expect(Request(4000, false), 0), 12u);
}

}  // namespace
}  // namespace penstock::scheduler
