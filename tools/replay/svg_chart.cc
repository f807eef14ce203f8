#include "tools/replay/svg_chart.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace penstock::replay {
namespace {

constexpr double kLeft = 52;
constexpr double kRight = 14;
constexpr double kTop = 44;
constexpr double kBottom = 40;
constexpr double kLegendLine = 30;  // height of the row that has the y label and the legend
constexpr double kCharacter = 5.6;  // width of one, about, at size 10
constexpr std::array<std::string_view, 4> kColours = {"#1f6feb", "#d1242f", "#1a7f37", "#8250df"};

bool Drawn(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

bool Drawn(const Range& range) {
  return std::isfinite(range.x) && std::isfinite(range.low) && std::isfinite(range.high);
}

class Panel {
 public:
  Panel(const Chart& chart, const PanelSize& size, double left)
      : chart_(chart), size_(size), left_(left + kLeft) {
    double x = 0;
    double y = 0;
    for (const Curve& curve : chart.curves) {
      for (const Point& point : curve.points) {
        if (!Drawn(point)) continue;
        x = std::max(x, point.x);
        y = std::max(y, point.y);
      }
      for (const Range& range : curve.band) {
        if (Drawn(range)) y = std::max(y, range.high);
      }
    }
    x_ticks_ = TicksFor(x);
    y_ticks_ = TicksFor(y);
  }

  std::string Draw() const {
    std::string svg = SvgText(left_ + Width() / 2, 16, "middle", 13, chart_.title);
    svg += Grid();
    svg += SvgText(left_ + Width() / 2, size_.height - 6, "middle", 11, chart_.x_label);
    svg += SvgText(left_ - kLeft + 4, kLegendLine + 4, "start", 11, chart_.y_label);
    svg += Legend();
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) svg += Band(i);
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) svg += Line(i);
    return svg;
  }

 private:
  double Width() const { return size_.width - kLeft - kRight; }
  double Height() const { return size_.height - kTop - kBottom; }
  double X(double x) const { return left_ + x / x_ticks_.End() * Width(); }
  double Y(double y) const { return size_.height - kBottom - y / y_ticks_.End() * Height(); }

  std::string Grid() const {
    std::string svg;
    for (int i = 0; i <= x_ticks_.count; ++i) {
      const double value = i * x_ticks_.step;
      svg += absl::StrFormat("<path d=\"M%.1f %.1fV%.1f\" stroke=\"#d0d7de\"/>\n", X(value), Y(0),
                             Y(y_ticks_.End())) +
             SvgText(X(value), size_.height - kBottom + 14, "middle", 10,
                     absl::StrFormat("%g", value));
    }
    for (int i = 0; i <= y_ticks_.count; ++i) {
      const double value = i * y_ticks_.step;
      svg += absl::StrFormat("<path d=\"M%.1f %.1fH%.1f\" stroke=\"#d0d7de\"/>\n", left_, Y(value),
                             left_ + Width()) +
             SvgText(left_ - 4, Y(value) + 3, "end", 10, absl::StrFormat("%g", value));
    }
    return svg;
  }

  // From right to left, in the row above the panel.
  std::string Legend() const {
    std::string svg;
    double right = left_ + Width();
    for (std::size_t i = chart_.curves.size(); i-- > 0;) {
      const std::string& name = chart_.curves[i].name;
      if (name.empty()) continue;
      const double begin = right - kCharacter * static_cast<double>(name.size());
      svg +=
          absl::StrFormat("<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"3\" fill=\"%s\"/>\n",
                          begin - 14, kLegendLine - 1, SvgColour(i).data()) +
          SvgText(begin, kLegendLine + 4, "start", 10, name);
      right = begin - 26;
    }
    return svg;
  }

  std::string Band(std::size_t index) const {
    const std::vector<Range>& band = chart_.curves[index].band;
    std::string path;
    for (const Range& range : band) {
      if (!Drawn(range)) continue;
      path += absl::StrFormat("%s%.1f %.1f", path.empty() ? "M" : "L", X(range.x), Y(range.high));
    }
    if (path.empty()) return "";
    for (auto range = band.rbegin(); range != band.rend(); ++range) {
      if (!Drawn(*range)) continue;
      path += absl::StrFormat("L%.1f %.1f", X(range->x), Y(std::max(range->low, 0.0)));
    }
    return "<path d=\"" + path + absl::StrFormat("Z\" fill=\"%s\"", SvgColour(index).data()) +
           " fill-opacity=\"0.18\"/>\n";
  }

  std::string Line(std::size_t index) const {
    const Curve& curve = chart_.curves[index];
    const char* colour = SvgColour(index).data();
    std::string path;
    std::string dots;
    for (const Point& point : curve.points) {
      if (!Drawn(point)) continue;
      path += absl::StrFormat("%s%.1f %.1f", path.empty() ? "M" : "L", X(point.x), Y(point.y));
      if (!curve.dots) continue;
      dots += absl::StrFormat("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.2\" fill=\"%s\"/>\n",
                              X(point.x), Y(point.y), colour);
    }
    if (path.empty()) return "";
    return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour +
           "\" stroke-width=\"1.5\"/>\n" + dots;
  }

  const Chart& chart_;
  const PanelSize& size_;
  double left_;
  SvgTicks x_ticks_;
  SvgTicks y_ticks_;
};

}  // namespace

std::string_view SvgColour(std::size_t index) { return kColours[index % kColours.size()]; }

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

std::string SvgText(double x, double y, const char* anchor, int size, const std::string& text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\">", x, y,
                         anchor, size) +
         SvgEscape(text) + "</text>\n";
}

std::string SvgBegin(double width, double height) {
  return absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" fill=\"#24292f\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
      width, height);
}

// The smallest of 1, 2, 2.5, 5 times a power of ten of which at most six reach `most`.
SvgTicks TicksFor(double most) {
  if (!(most > 0)) return {};
  const double power = std::pow(10, std::floor(std::log10(most)) - 1);
  double step = power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0, 20.0}) {
    step = factor * power;
    if (most <= 6 * step * (1 + 1e-9)) break;
  }
  return {step, std::max(1, static_cast<int>(std::ceil(most / step - 1e-9)))};
}

std::string ToSvg(const std::vector<Chart>& charts, const PanelSize& size) {
  std::string svg = SvgBegin(size.width * static_cast<double>(charts.size()), size.height);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    svg += Panel(charts[i], size, size.width * static_cast<double>(i)).Draw();
  }
  return svg + "</svg>\n";
}

}  // namespace penstock::replay
