#include "tools/chart/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <string>
#include <vector>

namespace penstock::chart {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Chart OneCurve(std::vector<Point> points) {
  return {.title = "a < b",
          .x = {.label = "s"},
          .y = {.label = "n"},
          .curves = {{.name = "one", .points = std::move(points)}}};
}

// The texts at the ticks of the x axis, which are centred.
std::vector<std::string> XTicks(const Chart& chart) {
  const std::string svg = ToSvg({chart});
  const std::regex tick("text-anchor=\"middle\" font-size=\"12\"[^>]*>([0-9.e+-]+)<");
  std::vector<std::string> ticks;
  for (std::sregex_iterator at(svg.begin(), svg.end(), tick), end; at != end; ++at) {
    ticks.push_back((*at)[1]);
  }
  return ticks;
}

TEST(LineChart, DrawsEveryCurveAndOmitsValuesThatAreNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string svg = ToSvg({OneCurve({{0, 0}, {nan, 1}, {3, 43}})});
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr(">50<")) << "43 is rounded up";
  EXPECT_THAT(svg, HasSubstr(">one<"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(ToSvg({OneCurve({})}), HasSubstr("</svg>")) << "nothing to draw";
}

TEST(LineChart, CountsHaveTicksAtIntegersOnly) {
  Chart chart = OneCurve({{1, 1}, {4, 1}});
  chart.x = {.label = "parts", .whole = true, .begin = 1};
  EXPECT_THAT(XTicks(chart), ElementsAre("1", "2", "3", "4"));
}

TEST(LineChart, ALogarithmicAxisHoldsAllValues) {
  Chart chart = OneCurve({{0, 0}, {3, 1}, {240, 1}});
  chart.x.logarithmic = true;
  EXPECT_THAT(XTicks(chart), ElementsAre("10", "100"));
  EXPECT_THAT(ToSvg({chart}), Not(HasSubstr("inf")));
  chart.curves.front().points = {{7.2, 0}, {14.3, 1}};
  EXPECT_THAT(XTicks(chart), ElementsAre("7", "8", "10", "15"));
}

TEST(LineChart, NamesItsThreshold) {
  Chart chart = OneCurve({{0, 0.1}, {1, 0.2}});
  chart.threshold = Threshold{0.4, "bound 0.4"};
  const std::string svg = ToSvg({chart});
  EXPECT_THAT(svg, HasSubstr(">bound 0.4<"));
  EXPECT_THAT(svg, HasSubstr("stroke-dasharray"));
}

TEST(LineChart, AWideBandDoesNotFlattenTheCurves) {
  Chart chart = OneCurve({{0, 1}, {1, 1}});
  chart.curves.front().band = {{0, 0.5, 90}, {1, -80, 2}};
  const std::string svg = ToSvg({chart});
  EXPECT_THAT(svg, HasSubstr(">1.5<"));
  EXPECT_THAT(svg, Not(HasSubstr(">2<")));
}

TEST(LineChart, ALonePanelIsAsWideAsThePicture) {
  const Chart chart = OneCurve({{0, 0}, {1, 1}});
  for (const auto& charts : {std::vector{chart}, std::vector{chart, chart, chart}}) {
    EXPECT_THAT(ToSvg(charts), HasSubstr("h598.0")) << "680 without the margins";
  }
}

}  // namespace
}  // namespace penstock::chart
