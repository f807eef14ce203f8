// Parts of the pictures that the tools write as SVG text. A picture follows the light or dark
// scheme of its reader.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::chart {

inline constexpr double kPictureWidth = 680;  // text of 12 can be read on a phone, too

// A colour is the name of a style class, so that it can differ between light and dark.
inline constexpr std::string_view kInk = "ink";    // text; the prompt of a request
inline constexpr std::string_view kGrid = "grid";  // lines behind the data
inline constexpr std::string_view kWaiting = "waiting";

// The colour of a batching mode: the same in every picture. Takes effective-batching's names
// (nobatch, static, static-window, dynamic) and those of --batching (none, continuous).
std::string_view ModeColour(std::string_view mode);
// Colours of curves that stand for no batching mode.
std::string_view SeriesColour(std::size_t index);

std::string SvgBegin(double width, double height);  // ends with "</svg>\n"
std::string SvgText(double x, double y, const char* anchor, int size, std::string_view text);
// Reads from the bottom to the top; (x, y) is its middle.
std::string SvgUpwardText(double x, double y, int size, std::string_view text);
std::string SvgRectangle(double x, double y, double width, double height, std::string_view colour);
std::string SvgLine(const std::string& path, std::string_view colour, double width,
                    bool dashed = false);
std::string SvgArea(const std::string& path, std::string_view colour, double opacity = 1);
std::string SvgEscape(std::string_view text);

struct LegendEntry {
  std::string text;
  std::string_view colour;
};
// One row, from left to right.
std::string SvgLegend(double x, double y, const std::vector<LegendEntry>& entries);

// Ticks at round values: `step` apart, so that `count` steps reach at least `most`.
struct Ticks {
  double step = 1;
  int count = 1;
  double End() const { return step * count; }
};
// `whole`: of a count, which has no values between the integers.
Ticks TicksFor(double most, bool whole = false);

}  // namespace penstock::chart
