#include "tools/chart/line_chart.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "tools/chart/svg.h"

namespace penstock::chart {
namespace {

constexpr double kHeight = 290;  // of a row of panels
constexpr double kAlone = 380;   // of the row of one panel
constexpr double kLeft = 62;
constexpr double kRight = 20;
constexpr double kTop = 54;  // title and legend
constexpr double kBottom = 48;
// A band may be far wider than the curves are high; the axis ends at this many times their top.
constexpr double kMostOfBand = 1.5;
constexpr std::size_t kMostLogarithmicTicks = 7;

bool Drawn(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

bool Drawn(const Range& range) {
  return std::isfinite(range.x) && std::isfinite(range.low) && std::isfinite(range.high);
}

struct Tick {
  double value = 0;
  double at = 0;  // share of the axis, 0 … 1
};

// Where a value lies on an axis: 0 at its begin, 1 at its end.
class Scale {
 public:
  Scale(const Axis& axis, double least, double most)
      : logarithmic_(axis.logarithmic && least > 0), begin_(axis.begin) {
    if (logarithmic_) {
      PlaceLogarithmic(least, most);
      return;
    }
    const Ticks ticks = TicksFor(most - begin_, axis.whole);
    end_ = begin_ + ticks.End();
    for (int i = 0; i <= ticks.count; ++i) Add(begin_ + i * ticks.step);
  }

  double At(double value) const {
    if (!logarithmic_) return (value - begin_) / (end_ - begin_);
    return std::log(std::max(value, begin_) / begin_) / std::log(end_ / begin_);
  }

  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  void Add(double value) { ticks_.push_back({value, At(value)}); }

  // From 1, 2 or 5 times a power of ten to another one; closer where the values are close.
  void PlaceLogarithmic(double least, double most) {
    constexpr double kFactors[] = {1, 2, 5};
    constexpr double kCloseFactors[] = {1, 1.5, 2, 3, 4, 5, 6, 7, 8};
    const std::span<const double> factors =
        most < 5 * least ? std::span<const double>(kCloseFactors) : kFactors;
    std::vector<double> values;
    double power = std::pow(10, std::floor(std::log10(least)));
    for (bool reached = false; !reached; power *= 10) {
      for (const double factor : factors) {
        const double value = factor * power;
        if (value <= least) values.clear();
        values.push_back(value);
        reached = values.size() > 1 && value >= most;
        if (reached) break;
      }
    }
    begin_ = values.front();
    end_ = values.back();
    const bool all = values.size() <= kMostLogarithmicTicks;
    for (const double value : values) {
      const double decade = std::log10(value);
      if (all || std::abs(decade - std::round(decade)) < 1e-6) Add(value);
    }
  }

  bool logarithmic_;
  double begin_;
  double end_ = 1;
  std::vector<Tick> ticks_;
};

struct Box {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;
};

class Panel {
 public:
  Panel(const Chart& chart, const Box& box)
      : chart_(chart), box_(box), x_(XScale(chart)), y_(YScale(chart)) {}

  std::string Draw() const {
    std::string svg = SvgText(Left(), box_.top + 20, "start", 15, chart_.title);
    svg += Grid();
    svg += SvgText(Left() + Width() / 2, box_.top + box_.height - 8, "middle", 12, chart_.x.label);
    svg += SvgUpwardText(box_.left + 16, Bottom() - Height() / 2, 12, chart_.y.label);
    std::vector<LegendEntry> legend;
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) {
      if (!chart_.curves[i].name.empty()) legend.push_back({chart_.curves[i].name, Colour(i)});
    }
    svg += SvgLegend(Left(), box_.top + 42, legend);
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) svg += Band(i);
    for (std::size_t i = 0; i < chart_.curves.size(); ++i) svg += Line(i);
    return svg + ThresholdLine();
  }

 private:
  static Scale XScale(const Chart& chart) {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    for (const Curve& curve : chart.curves) {
      for (const Point& point : curve.points) {
        if (!Drawn(point)) continue;
        most = std::max(most, point.x);
        if (point.x > 0) least = std::min(least, point.x);
      }
    }
    return Scale(chart.x, std::isfinite(least) ? least : 0, most);
  }

  static Scale YScale(const Chart& chart) {
    double most = chart.threshold ? chart.threshold->y : 0;
    double band = 0;
    for (const Curve& curve : chart.curves) {
      for (const Point& point : curve.points) {
        if (Drawn(point)) most = std::max(most, point.y);
      }
      for (const Range& range : curve.band) {
        if (Drawn(range)) band = std::max(band, range.high);
      }
    }
    return Scale(chart.y, 0, std::max(most, std::min(band, kMostOfBand * most)));
  }

  std::string_view Colour(std::size_t index) const {
    const std::string_view own = chart_.curves[index].colour;
    return own.empty() ? SeriesColour(index) : own;
  }

  double Left() const { return box_.left + kLeft; }
  double Width() const { return box_.width - kLeft - kRight; }
  double Height() const { return box_.height - kTop - kBottom; }
  double Bottom() const { return box_.top + box_.height - kBottom; }
  double X(double x) const { return Left() + x_.At(x) * Width(); }
  double Y(double y) const { return Bottom() - std::clamp(y_.At(y), 0.0, 1.0) * Height(); }

  std::string Grid() const {
    std::string svg;
    for (const Tick& tick : x_.ticks()) {
      const double x = Left() + tick.at * Width();
      svg += SvgLine(absl::StrFormat("M%.1f %.1fv%.1f", x, Bottom(), -Height()), kGrid, 1) +
             SvgText(x, Bottom() + 16, "middle", 12, absl::StrFormat("%g", tick.value));
    }
    for (const Tick& tick : y_.ticks()) {
      const double y = Bottom() - tick.at * Height();
      svg += SvgLine(absl::StrFormat("M%.1f %.1fh%.1f", Left(), y, Width()), kGrid, 1) +
             SvgText(Left() - 6, y + 4, "end", 12, absl::StrFormat("%g", tick.value));
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
      path += absl::StrFormat("L%.1f %.1f", X(range->x), Y(range->low));
    }
    return SvgArea(path + "Z", Colour(index), 0.22);
  }

  std::string Line(std::size_t index) const {
    const Curve& curve = chart_.curves[index];
    std::string path;
    std::string dots;
    for (const Point& point : curve.points) {
      if (!Drawn(point)) continue;
      path += absl::StrFormat("%s%.1f %.1f", path.empty() ? "M" : "L", X(point.x), Y(point.y));
      if (!curve.dots) continue;
      dots += absl::StrFormat(
          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" class=\"%s\" fill=\"currentColor\"/>\n",
          X(point.x), Y(point.y), Colour(index));
    }
    return SvgLine(path, Colour(index), 2, curve.dashed) + dots;
  }

  std::string ThresholdLine() const {
    if (!chart_.threshold) return "";
    const double y = Y(chart_.threshold->y);
    return SvgLine(absl::StrFormat("M%.1f %.1fh%.1f", Left(), y, Width()), kInk, 1.5, true) +
           SvgText(Left() + Width() - 4, y - 5, "end", 12, chart_.threshold->name);
  }

  const Chart& chart_;
  const Box box_;
  const Scale x_;
  const Scale y_;
};

}  // namespace

std::string ToSvg(const std::vector<Chart>& charts) {
  std::string body;
  double top = 0;
  for (std::size_t i = 0; i < charts.size(); i += 2) {
    const bool alone = i + 1 == charts.size();
    const double height = alone ? kAlone : kHeight;
    const double width = alone ? kPictureWidth : kPictureWidth / 2;
    body += Panel(charts[i], {0, top, width, height}).Draw();
    if (!alone) body += Panel(charts[i + 1], {width, top, width, height}).Draw();
    top += height;
  }
  return SvgBegin(kPictureWidth, top) + body + "</svg>\n";
}

}  // namespace penstock::chart
