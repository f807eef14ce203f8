#include "sim/model/expected_lengths.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/admission/output_lengths.h"
#include "sim/random.h"

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

// More requests end than in any simulated run, so that old lengths fade. Outputs grow meanwhile.
TEST(ExpectedLengthsTest, TheCoreExpectsTheSameAsOldLengthsFade) {
  ExpectedLengths lengths;
  scheduler::OutputLengths core;
  Random random(1);
  for (std::uint32_t i = 0; i < 40'000; ++i) {
    scheduler::Arrival request = Request(random.Between(1, 3000), random.OneIn(3));
    request.request_class = static_cast<RequestClass>(random.Below(2));
    const std::uint32_t most = std::min(request.max_new_tokens, 1 + i / 20);
    const std::uint32_t generated = random.Between(most / 2, most);
    lengths.Learn(request, generated);
    core.Learn(request, generated);
    const std::uint32_t so_far = random.OneIn(2) ? 0 : random.Below(request.max_new_tokens);
    ASSERT_EQ(core.Expect(request, so_far), lengths.Expect(request, so_far))
        << "request " << i << " with " << so_far << " tokens";
  }
}

}  // namespace
}  // namespace penstock::sim
