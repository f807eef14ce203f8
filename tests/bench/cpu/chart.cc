// Draws line charts in the style of the other pictures of this repository. Reads JSON from standard
// input and writes SVG to standard output:
//   [{"title": …, "x_label": …, "y_label": …, "curves": [{"name": …, "points": [[x, y], …]}]}, …]
#include <boost/json.hpp>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "common/json_parse.h"
#include "common/status.h"
#include "tests/bench/usage.h"
#include "tools/chart/line_chart.h"

namespace penstock::chart {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 32;

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

constexpr const char* kUsage =
    "Usage: penstock-chart < CHARTS.json > CHARTS.svg\n\n"
    "Draws line charts. CHARTS.json is an array of\n"
    "  {\"title\": ..., \"x_label\": ..., \"y_label\": ...,\n"
    "   \"curves\": [{\"name\": ..., \"points\": [[x, y], ...]}]}\n";

int Refuse(const std::string& reason) {
  std::cerr << "penstock-chart: error: standard input " << reason << "\n\n" << kUsage;
  return 2;
}

// Boost.JSON throws if a member is absent or of another type.
int Main(int argc, char** argv) {
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  try {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    std::vector<Chart> charts;
    const absl::StatusOr<json::value> parsed = ParseJson(text, kMaxDepth);
    if (!parsed.ok()) return Refuse(Message(parsed.status()));
    for (const json::value& chart : parsed->as_array()) {
      charts.push_back(ChartOf(chart.as_object()));
    }
    std::cout << ToSvg(charts);
    return 0;
  } catch (const std::exception&) {
    return Refuse("must be JSON charts: a member is missing or has another type");
  }
}

}  // namespace
}  // namespace penstock::chart

int main(int argc, char** argv) { return penstock::chart::Main(argc, argv); }
