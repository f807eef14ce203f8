#include "tools/chart/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace penstock::chart {
namespace {

using testing::HasSubstr;

TEST(Svg, EveryModeHasItsOwnColour) {
  std::set<std::string_view> colours;
  for (const char* mode : {"nobatch", "static", "static-window", "dynamic"}) {
    colours.insert(ModeColour(mode));
  }
  EXPECT_EQ(colours.size(), 4u);
  EXPECT_EQ(ModeColour("none"), ModeColour("nobatch"));
  EXPECT_EQ(ModeColour("continuous"), ModeColour("dynamic"));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_FALSE(colours.contains(SeriesColour(i)));
}

TEST(Svg, FollowsTheDarkSchemeOfTheReader) {
  const std::string svg = SvgBegin(10, 10);
  EXPECT_THAT(svg, HasSubstr("@media (prefers-color-scheme:dark){.ground{color:#0d1117}"));
  for (const std::string_view colour : {kInk, kGrid, kWaiting, ModeColour("dynamic")}) {
    EXPECT_THAT(svg, HasSubstr("." + std::string(colour) + "{color:#"));
  }
}

TEST(Svg, TicksAreRoundAndReachTheValue) {
  EXPECT_EQ(TicksFor(43).step, 10);
  EXPECT_EQ(TicksFor(43).End(), 50);
  EXPECT_EQ(TicksFor(0.3).step, 0.05);
  EXPECT_EQ(TicksFor(3).step, 0.5);
  EXPECT_EQ(TicksFor(3, true).step, 1);
  EXPECT_EQ(TicksFor(0).count, 1);
}

}  // namespace
}  // namespace penstock::chart
