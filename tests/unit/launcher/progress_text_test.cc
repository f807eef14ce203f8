#include "launcher/progress_text.h"

#include <gtest/gtest.h>

namespace penstock::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kMiB = 1 << 20;

ProgressNotice Loading(std::uint64_t done) { return {"loading", done, 500 * kMiB, "bytes"}; }

TEST(ProgressTextTest, SaysHowFarHowFastAndHowLong) {
  ProgressText text(seconds(1));
  const ProgressText::Time start{};
  EXPECT_FALSE(text.Line("shard-0", Loading(0), start).has_value()) << "nothing is loaded yet";
  EXPECT_EQ(text.Line("shard-0", Loading(100 * kMiB), start + seconds(2)),
            "loading 100 MiB of 500 MiB (20 %), 50 MiB/s, 8 s left");
  EXPECT_EQ(text.Line("shard-0", Loading(500 * kMiB), start + milliseconds(2100)),
            "loading 500 MiB of 500 MiB (100 %)");
}

TEST(ProgressTextTest, KeepsQuietBetweenIntervals) {
  ProgressText text(seconds(10));
  const ProgressText::Time start{};
  EXPECT_TRUE(text.Line("shard-0", Loading(5 * kMiB), start).has_value());
  EXPECT_FALSE(text.Line("shard-0", Loading(9 * kMiB), start + seconds(9)).has_value());
  EXPECT_TRUE(text.Line("shard-1", Loading(9 * kMiB), start + seconds(9)).has_value());
  EXPECT_TRUE(text.Line("shard-0", Loading(9 * kMiB), start + seconds(10)).has_value());
}

TEST(ProgressTextTest, SaysTheEndOfAStageOnce) {
  ProgressText text(seconds(10));
  const ProgressText::Time start{};
  EXPECT_TRUE(text.Line("shard-0", Loading(5 * kMiB), start).has_value());
  EXPECT_TRUE(text.Line("shard-0", Loading(500 * kMiB), start + seconds(1)).has_value());
  EXPECT_FALSE(text.Line("shard-0", Loading(500 * kMiB), start + seconds(30)).has_value());
  EXPECT_TRUE(text.Line("shard-0", Loading(5 * kMiB), start + seconds(40)).has_value())
      << "the child was started again";
}

TEST(ProgressTextTest, ANewStageIsAlwaysShown) {
  ProgressText text(seconds(10));
  const ProgressText::Time start{};
  EXPECT_TRUE(text.Line("shard-0", Loading(5 * kMiB), start).has_value());
  EXPECT_EQ(text.Line("shard-0", {"config.json", 0, 0, ""}, start), "reading config.json");
  EXPECT_EQ(text.Line("shard-0", {"layers", 3, 4, "layers"}, start), "layers 3 of 4 layers (75 %)");
}

}  // namespace
}  // namespace penstock::launcher
