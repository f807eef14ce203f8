// Line charts as SVG text, small enough to commit: a panel per chart, side by side.
#pragma once

#include <string>
#include <vector>

namespace penstock::replay {

struct Point {
  double x = 0;
  double y = 0;
};

struct Curve {
  std::string name;  // in the legend; empty: none
  std::vector<Point> points;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves;
};

// Both axes begin at 0 and end at a round number. Values that are not finite are left out.
std::string ToSvg(const std::vector<Chart>& charts);

}  // namespace penstock::replay
