// Line charts as SVG text, small enough to commit: two panels a row.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::chart {

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
  std::string_view colour = {};  // of svg.h; empty: by the curve's position
  std::vector<Range> band = {};
  bool dots = false;  // each point is marked
  bool dashed = false;
};

// A horizontal line across the panel, with its name.
struct Threshold {
  double y = 0;
  std::string name;
};

// An axis begins at 0 and ends at a round number.
struct Axis {
  std::string label;         // with the unit
  bool whole = false;        // a count: ticks at integers only
  bool logarithmic = false;  // of an x axis: from the least value above 0 to the largest
  double begin = 0;          // of an x axis: a whole number that the values do not go below
};

struct Chart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Curve> curves;
  std::optional<Threshold> threshold = std::nullopt;
};

// A panel alone in its row is as wide as the picture. Values that are not finite are omitted.
std::string ToSvg(const std::vector<Chart>& charts);

}  // namespace penstock::chart
