#include "sim/model/expected_lengths.h"

#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

scheduler::Arrival Request(std::uint32_t most, bool given) {
  scheduler::Arrival arrival;
  arrival.max_new_tokens = most;
  arrival.length_given = given;
  return arrival;
}

TEST(ExpectedLengthsTest, WithoutObservationsTheTableCounts) {
  const ExpectedLengths lengths;
  EXPECT_EQ(lengths.Expect(Request(100, true), 0), 75u);
  EXPECT_EQ(lengths.Expect(Request(100, false), 0), 25u);
  EXPECT_EQ(lengths.Expect(Request(100, true), 80), 100u) << "a quarter more than it has";
}

TEST(ExpectedLengthsTest, PrefersTheLengthThatTheClientExpects) {
  scheduler::Arrival request = Request(100, true);
  request.predicted_tokens = 10;
  EXPECT_EQ(ExpectedLengths().Expect(request, 0), 10u);
  EXPECT_EQ(ExpectedLengths().Expect(request, 10), 12u);
}

TEST(ExpectedLengthsTest, TheQuantileCountsLongerOutputsOnly) {
  ExpectedLengths lengths;
  for (std::uint32_t i = 0; i < 30; ++i) lengths.Learn(Request(100, false), 4);
  for (std::uint32_t i = 0; i < 10; ++i) lengths.Learn(Request(100, false), 10 + 10 * i);
  EXPECT_EQ(lengths.Expect(Request(100, false), 0), 23u) << "32 of 40 are below 24";
  EXPECT_EQ(lengths.Expect(Request(100, false), 50), 95u) << "5 of 6 longer ones are below 96";
  EXPECT_EQ(lengths.Expect(Request(100, true), 0), 75u) << "another class";
}

}  // namespace
}  // namespace penstock::sim
