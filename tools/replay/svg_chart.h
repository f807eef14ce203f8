// Line charts as SVG text, small enough to commit: a panel per chart, side by side.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::replay {

struct Point {
  double x = 0;
  double y = 0;
};

// The confidence interval of a value, drawn as a shade under the curve.
struct Range {
  double x = 0;
  double low = 0;
  double high = 0;
};

struct Curve {
  std::string name;  // in the legend; empty: none
  std::vector<Point> points;
  std::vector<Range> band = {};
  bool dots = false;  // each point is marked
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves;
};

struct PanelSize {
  double width = 360;
  double height = 240;
};

// Both axes begin at 0 and end at a round number. Values that are not finite are omitted.
std::string ToSvg(const std::vector<Chart>& charts, const PanelSize& size = {});

// Helpers for other pictures in the same style.
std::string_view SvgColour(std::size_t index);
std::string SvgText(double x, double y, const char* anchor, int size, const std::string& text);
std::string SvgEscape(std::string_view text);
std::string SvgBegin(double width, double height);  // ends with "</svg>\n"
// Ticks at round values: `step` apart, so that `count` steps reach at least `most`.
struct SvgTicks {
  double step = 1;
  int count = 1;
  double End() const { return step * count; }
};
SvgTicks TicksFor(double most);

}  // namespace penstock::replay
