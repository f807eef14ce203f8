#include "tools/replay/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace penstock::replay {
namespace {

constexpr double kWidth = 360;  // of a panel
constexpr double kHeight = 240;
constexpr double kLeft = 52;
constexpr double kRight = 14;
constexpr double kTop = 30;
constexpr double kBottom = 40;
constexpr std::array<const char*, 4> kColours = {"#1f6feb", "#d1242f", "#1a7f37", "#8250df"};

template <class... Values>
std::string Format(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Escape(const std::string& text) {
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

// The smallest of 1, 2, 5 times a power of ten that is not below `value`.
double RoundUp(double value) {
  if (value <= 0) return 1;
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

bool Drawn(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

class Panel {
 public:
  Panel(const Chart& chart, double left) : chart_(chart), left_(left + kLeft) {
    double x = 0;
    double y = 0;
    for (const Curve& curve : chart.curves) {
      for (const Point& point : curve.points) {
        if (!Drawn(point)) continue;
        x = std::max(x, point.x);
        y = std::max(y, point.y);
      }
    }
    most_ = {RoundUp(x), RoundUp(y)};
  }

  std::string Draw() const {
    std::string svg = Text(left_ + Width() / 2, 18, "middle", 13, chart_.title);
    for (int i = 0; i <= 4; ++i) svg += Grid(i / 4.0);
    svg += Text(left_ + Width() / 2, kHeight - 6, "middle", 11, chart_.x_label);
    svg += Text(left_ - kLeft + 4, kTop - 8, "start", 11, chart_.y_label);
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) svg += Line(i);
    return svg;
  }

 private:
  static double Width() { return kWidth - kLeft - kRight; }
  double X(double x) const { return left_ + x / most_.x * Width(); }
  double Y(double y) const { return kHeight - kBottom - y / most_.y * (kHeight - kTop - kBottom); }

  static std::string Text(double x, double y, const char* anchor, int size,
                          const std::string& text) {
    return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\">", x, y, anchor,
                  size) +
           Escape(text) + "</text>\n";
  }

  std::string Grid(double share) const {
    const double x = X(share * most_.x);
    const double y = Y(share * most_.y);
    return Format("<path d=\"M%.1f %.1fH%.1fM%.1f %.1fV%.1f\" stroke=\"#d0d7de\"/>\n", left_, y,
                  left_ + Width(), x, Y(0), Y(most_.y)) +
           Text(x, kHeight - kBottom + 14, "middle", 10, Format("%g", share * most_.x)) +
           Text(left_ - 4, y + 3, "end", 10, Format("%g", share * most_.y));
  }

  std::string Line(std::size_t index) const {
    const Curve& curve = chart_.curves[index];
    const char* colour = kColours[index % kColours.size()];
    std::string path;
    for (const Point& point : curve.points) {
      if (!Drawn(point)) continue;
      path += Format("%s%.1f %.1f", path.empty() ? "M" : "L", X(point.x), Y(point.y));
    }
    std::string svg =
        "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"1.5\"/>\n";
    if (curve.name.empty()) return svg;
    const double y = kTop + 12 + 14 * static_cast<double>(index);
    return svg +
           Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"3\" fill=\"%s\"/>\n",
                  left_ + Width() - 110, y - 5, colour) +
           Text(left_ + Width() - 96, y, "start", 10, curve.name);
  }

  const Chart& chart_;
  double left_;
  Point most_;
};

}  // namespace

std::string ToSvg(const std::vector<Chart>& charts) {
  const double width = kWidth * static_cast<double>(charts.size());
  std::string svg = Format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" fill=\"#24292f\">\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
      width, kHeight);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    svg += Panel(charts[i], kWidth * static_cast<double>(i)).Draw();
  }
  return svg + "</svg>\n";
}

}  // namespace penstock::replay
