#include "tools/chart/svg.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace penstock::chart {
namespace {

constexpr double kCharacter = 6.8;  // width of one at size 12, about

struct Colour {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

constexpr std::array<Colour, 12> kColours = {{{"ground", "#ffffff", "#0d1117"},
                                              {kInk, "#1f2328", "#e6edf3"},
                                              {kGrid, "#d8dee4", "#30363d"},
                                              {kWaiting, "#afb8c1", "#57606a"},
                                              {"nobatch", "#0969da", "#58a6ff"},
                                              {"static", "#bc4c00", "#f0883e"},
                                              {"static-window", "#8250df", "#bc8cff"},
                                              {"dynamic", "#1a7f37", "#3fb950"},
                                              {"series-1", "#0e7490", "#39c5cf"},
                                              {"series-2", "#bf3989", "#f778ba"},
                                              {"series-3", "#7d4e00", "#d29922"},
                                              {"series-4", "#57606a", "#8b949e"}}};
constexpr std::array<std::string_view, 4> kSeries = {"series-1", "series-2", "series-3",
                                                     "series-4"};

std::string Styles(std::string_view Colour::*scheme) {
  std::string css;
  for (const Colour& colour : kColours) {
    absl::StrAppendFormat(&css, ".%s{color:%s}", colour.name, colour.*scheme);
  }
  return css;
}

}  // namespace

std::string_view ModeColour(std::string_view mode) {
  if (mode == "none") return "nobatch";
  if (mode == "continuous") return "dynamic";
  for (const Colour& colour : kColours) {
    if (colour.name == mode) return colour.name;
  }
  return SeriesColour(0);
}

std::string_view SeriesColour(std::size_t index) { return kSeries[index % kSeries.size()]; }

std::string SvgBegin(double width, double height) {
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\">\n<style>%s\n@media (prefers-color-scheme:dark){%s}\n</style>\n"
      "<rect width=\"100%%\" height=\"100%%\" class=\"ground\" fill=\"currentColor\"/>\n",
      width, height, Styles(&Colour::light), Styles(&Colour::dark));
}

std::string SvgText(double x, double y, const char* anchor, int size, std::string_view text) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" class=\"%s\" "
      "fill=\"currentColor\">%s</text>\n",
      x, y, anchor, size, kInk, SvgEscape(text));
}

std::string SvgUpwardText(double x, double y, int size, std::string_view text) {
  return absl::StrFormat("<g transform=\"translate(%.1f %.1f) rotate(-90)\">%s</g>\n", x, y,
                         SvgText(0, 0, "middle", size, text));
}

std::string SvgRectangle(double x, double y, double width, double height, std::string_view colour) {
  return absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s\" "
      "fill=\"currentColor\"/>\n",
      x, y, width, height, colour);
}

std::string SvgLine(const std::string& path, std::string_view colour, double width, bool dashed) {
  if (path.empty()) return "";
  return absl::StrFormat(
      "<path d=\"%s\" class=\"%s\" fill=\"none\" stroke=\"currentColor\" stroke-width=\"%g\"%s/>\n",
      path, colour, width, dashed ? " stroke-dasharray=\"6 4\"" : "");
}

std::string SvgArea(const std::string& path, std::string_view colour, double opacity) {
  if (path.empty()) return "";
  return absl::StrFormat(
      "<path d=\"%s\" class=\"%s\" fill=\"currentColor\" fill-opacity=\"%g\"/>\n", path, colour,
      opacity);
}

std::string SvgEscape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string SvgLegend(double x, double y, const std::vector<LegendEntry>& entries) {
  std::string svg;
  for (const LegendEntry& entry : entries) {
    svg +=
        SvgRectangle(x, y - 9, 14, 9, entry.colour) + SvgText(x + 19, y, "start", 12, entry.text);
    x += 36 + kCharacter * static_cast<double>(entry.text.size());
  }
  return svg;
}

// The smallest of 1, 2, 5 times a power of ten of which six reach `most`, eight for counts.
Ticks TicksFor(double most, bool whole) {
  if (!(most > 0)) return {};
  const double power = std::pow(10, std::floor(std::log10(most)) - 1);
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0}) {
    step = factor * power;
    if (most <= (whole ? 8 : 6) * step * (1 + 1e-9)) break;
  }
  if (whole) step = std::max(step, 1.0);
  return {step, std::max(1, static_cast<int>(std::ceil(most / step - 1e-9)))};
}

}  // namespace penstock::chart
