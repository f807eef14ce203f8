#include "router/dispatch/minute_sums.h"

#include <gtest/gtest.h>

#include <chrono>

namespace penstock::router {
namespace {

Time Minute(int number) { return Time{} + std::chrono::minutes(number); }

TimeTotals Decoding(int seconds) {
  TimeTotals totals{};
  totals[static_cast<std::size_t>(TimeKind::kDecode)] = std::chrono::seconds(seconds);
  return totals;
}

TEST(MinuteSumsTest, SumsOneHourAndForgetsWhatIsOlder) {
  MinuteSums sums;
  sums.Add(Decoding(1), Minute(0));
  sums.Add(Decoding(2), Minute(0));
  sums.Add(Decoding(4), Minute(59));
  EXPECT_EQ(sums.Sum(Minute(59)), Decoding(7));
  EXPECT_EQ(sums.Sum(Minute(60)), Decoding(4));
  sums.Add(Decoding(8), Minute(60));
  EXPECT_EQ(sums.Sum(Minute(60)), Decoding(12));
  EXPECT_EQ(sums.Sum(Minute(500)), Decoding(0));
}

}  // namespace
}  // namespace penstock::router
