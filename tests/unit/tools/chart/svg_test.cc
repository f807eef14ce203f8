#include "tools/chart/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/unit/support/paths.h"

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

// A picture that was made before a colour changed would show a mode in another colour.
TEST(Svg, PicturesOfTheDocumentsHaveThePresentColours) {
  const std::string begin = SvgBegin(10, 10);
  const std::size_t style = begin.find("<style>");
  const std::string styles = begin.substr(style, begin.find("</style>") - style);
  int pictures = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing_support::SourcePath("docs/images"))) {
    if (entry.path().extension() != ".svg") continue;
    std::ostringstream picture;
    picture << std::ifstream(entry.path()).rdbuf();
    EXPECT_THAT(picture.str(), HasSubstr(styles)) << entry.path();
    ++pictures;
  }
  EXPECT_GT(pictures, 2);
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
