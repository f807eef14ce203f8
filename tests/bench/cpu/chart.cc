// Draws line charts in the style of the other pictures of this repository. Reads JSON from standard
// input and writes SVG to standard output:
//   [{"title": …, "x_label": …, "y_label": …, "curves": [{"name": …, "points": [[x, y], …]}]}, …]
#include <boost/json.hpp>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tools/chart/line_chart.h"

namespace penstock::chart {
namespace {

namespace json = boost::json;

Curve CurveOf(const json::object& from) {
  Curve curve{.name = std::string(from.at("name").as_string()), .points = {}, .dots = true};
  for (const json::value& point : from.at("points").as_array()) {
    curve.points.push_back({point.at(0).to_number<double>(), point.at(1).to_number<double>()});
  }
  return curve;
}

Chart ChartOf(const json::object& from) {
  Chart chart{.title = std::string(from.at("title").as_string()),
              .x = {.label = std::string(from.at("x_label").as_string()), .whole = true},
              .y = {.label = std::string(from.at("y_label").as_string())},
              .curves = {}};
  for (const json::value& curve : from.at("curves").as_array()) {
    chart.curves.push_back(CurveOf(curve.as_object()));
  }
  return chart;
}

}  // namespace
}  // namespace penstock::chart

int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  std::vector<penstock::chart::Chart> charts;
  const boost::json::value parsed = boost::json::parse(text);
  for (const boost::json::value& chart : parsed.as_array()) {
    charts.push_back(penstock::chart::ChartOf(chart.as_object()));
  }
  std::cout << penstock::chart::ToSvg(charts);
}
