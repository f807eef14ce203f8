#include "tools/bench/effective/timeline_svg.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <string_view>

#include "tools/chart/svg.h"

namespace penstock::bench::effective {
namespace {

constexpr double kTimelineLeft = 74;
constexpr double kTimelineRight = 24;
constexpr double kTimelineHead = 62;      // title and legend of the whole picture
constexpr double kNarrowestPrompt = 2.5;  // a prompt is one short step, which must be seen

// Consecutive steps of one request, all prompt or all decode.
struct Stay {
  double begin = 0;
  double end = 0;
  std::size_t first_step = 0;
  std::size_t last_step = 0;
  bool prompt = false;
};

std::vector<std::vector<Stay>> Stays(const BatchTimeline& timeline) {
  std::vector<std::vector<Stay>> stays(timeline.requests.size());
  for (std::size_t s = 0; s < timeline.steps.size(); ++s) {
    const TimelineStep& step = timeline.steps[s];
    const auto add = [&](std::uint32_t request, bool prompt) {
      std::vector<Stay>& of_request = stays[request];
      const bool goes_on = !of_request.empty() && of_request.back().last_step + 1 == s &&
                           of_request.back().prompt == prompt;
      if (!goes_on) of_request.push_back({step.begin, step.end, s, s, prompt});
      of_request.back().last_step = s;
      of_request.back().end = step.end;
    };
    for (const std::uint32_t request : step.prompts) add(request, true);
    for (const std::uint32_t request : step.decodes) add(request, false);
  }
  return stays;
}

// One mode of the picture.
class ModePanel {
 public:
  static constexpr double kRows = 300;  // height of all requests together
  static constexpr double kGap = 18;
  static constexpr double kBatch = 60;  // of the batch size
  static constexpr double kHeight = kRows + kGap + kBatch + 82;

  ModePanel(const ModeTimeline& mode, double end, std::size_t largest, double top)
      : timeline_(mode.timeline),
        name_(mode.mode),
        colour_(chart::ModeColour(mode.mode)),
        ticks_(chart::TicksFor(end)),
        batch_(chart::TicksFor(static_cast<double>(largest), true)),
        top_(top) {}

  std::string Draw() const {
    std::string svg = chart::SvgText(kTimelineLeft, top_ + 12, "start", 13, Title()) + Grid() +
                      chart::SvgUpwardText(18, Row(0) + kRows / 2, 12, "request, by arrival");
    const auto stays = Stays(timeline_);
    for (std::size_t row = 0; row < timeline_.by_arrival.size(); ++row) {
      const std::uint32_t request = timeline_.by_arrival[row];
      svg += RequestLine(row, request, stays[request]);
    }
    return svg + BatchSize() + End() +
           chart::SvgText(kTimelineLeft + Width() / 2, BatchBottom() + 34, "middle", 12,
                          "seconds since the first arrival");
  }

 private:
  static double Width() { return chart::kPictureWidth - kTimelineLeft - kTimelineRight; }
  double X(double seconds) const { return kTimelineLeft + seconds / ticks_.End() * Width(); }
  double Row(std::size_t row) const {
    const auto count = std::max<std::size_t>(timeline_.by_arrival.size(), 1);
    return top_ + 22 + kRows * static_cast<double>(row) / static_cast<double>(count);
  }
  double BatchBottom() const { return top_ + 22 + kRows + kGap + kBatch; }

  std::string Title() const {
    return absl::StrFormat("%s: %u requests in %u steps, all answered after %.1f s", name_,
                           timeline_.requests.size(), timeline_.steps.size(), timeline_.end);
  }

  // A line at the end of the last answer, named where there is room beside it.
  std::string End() const {
    const double x = X(timeline_.end);
    std::string svg = chart::SvgLine(absl::StrFormat("M%.1f %.1fV%.1f", x, Row(0), BatchBottom()),
                                     chart::kInk, 1, true);
    if (x < kTimelineLeft + 0.7 * Width()) {
      svg += chart::SvgText(x + 8, Row(0) + 20, "start", 13, "all answered");
    }
    return svg;
  }

  std::string Grid() const {
    std::string svg;
    for (int i = 0; i <= ticks_.count; ++i) {
      const double value = i * ticks_.step;
      svg +=
          chart::SvgLine(absl::StrFormat("M%.1f %.1fV%.1f", X(value), Row(0), BatchBottom()),
                         chart::kGrid, 1) +
          chart::SvgText(X(value), BatchBottom() + 16, "middle", 12, absl::StrFormat("%g", value));
    }
    const std::size_t count = timeline_.by_arrival.size();
    const chart::Ticks rows = chart::TicksFor(static_cast<double>(count), true);
    for (double row = rows.step; row <= static_cast<double>(count); row += rows.step) {
      const double y = Row(static_cast<std::size_t>(row) - 1);
      svg += chart::SvgText(kTimelineLeft - 6, y + 5, "end", 11, absl::StrFormat("%g", row));
    }
    return svg;
  }

  std::string RequestLine(std::size_t row, std::uint32_t request,
                          const std::vector<Stay>& stays) const {
    if (stays.empty()) return "";
    const TimelineRequest& facts = timeline_.requests[request];
    const double y = Row(row);
    const double height = std::max(Row(row + 1) - y - 0.6, 0.5);
    std::string svg = absl::StrFormat(
        "<g><title>request %u: %u tokens, arrived at %.3f s, waited %.3f s, steps %u to "
        "%u</title>\n",
        request, facts.num_tokens, facts.arrival, stays.front().begin - facts.arrival,
        stays.front().first_step + 1, stays.back().last_step + 1);
    std::string prompts;  // above the rest
    double from = facts.arrival;
    for (const Stay& stay : stays) {
      if (stay.begin > from) {
        svg += chart::SvgRectangle(X(from), y + height * 0.2, X(stay.begin) - X(from), height * 0.6,
                                   chart::kWaiting);
      }
      const double width = X(stay.end) - X(stay.begin);
      if (stay.prompt) {
        prompts += chart::SvgRectangle(X(stay.begin), y, std::max(width, kNarrowestPrompt), height,
                                       chart::kInk);
      } else {
        svg += chart::SvgRectangle(X(stay.begin), y, std::max(width, 0.5), height, colour_);
      }
      from = stay.end;
    }
    return svg + prompts + "</g>\n";
  }

  std::string BatchSize() const {
    const auto y = [&](double rows) { return BatchBottom() - rows / batch_.End() * kBatch; };
    std::string path = absl::StrFormat("M%.1f %.1f", X(0), y(0));
    std::size_t last = 0;
    double idle_from = 0;
    for (const TimelineStep& step : timeline_.steps) {
      const std::size_t rows = step.prompts.size() + step.decodes.size();
      if (last > 0 && step.begin - idle_from > 1e-3) {
        path += absl::StrFormat("H%.1fV%.1f", X(idle_from), y(0));
        last = 0;
      }
      if (rows != last) {
        path += absl::StrFormat("H%.1fV%.1f", X(step.begin), y(static_cast<double>(rows)));
        last = rows;
      }
      idle_from = step.end;
    }
    path += absl::StrFormat("H%.1fV%.1fZ", X(idle_from), y(0));
    const std::string base = absl::StrFormat("M%.1f %.1fh%.1f", kTimelineLeft, y(0), Width());
    return chart::SvgLine(base, chart::kInk, 1) + chart::SvgArea(path, colour_, 0.4) +
           chart::SvgLine(path, colour_, 1) +
           chart::SvgText(kTimelineLeft - 6, y(batch_.End()) + 8, "end", 11,
                          absl::StrFormat("%g", batch_.End())) +
           chart::SvgText(kTimelineLeft - 6, y(0), "end", 11, "0") +
           chart::SvgUpwardText(18, BatchBottom() - kBatch / 2 + 4, 12, "in a step");
  }

  const BatchTimeline& timeline_;
  const std::string& name_;
  const std::string_view colour_;
  const chart::Ticks ticks_;
  const chart::Ticks batch_;
  const double top_;
};

}  // namespace

std::string TimelineSvg(const std::vector<ModeTimeline>& modes) {
  double end = 0;
  std::size_t largest = 1;
  std::vector<chart::LegendEntry> legend = {{"waiting", chart::kWaiting}, {"prompt", chart::kInk}};
  for (const ModeTimeline& mode : modes) {
    legend.push_back(
        {(legend.size() == 2 ? "generating: " : "") + mode.mode, chart::ModeColour(mode.mode)});
    end = std::max(end, mode.timeline.end);
    for (const TimelineStep& step : mode.timeline.steps) {
      largest = std::max(largest, step.prompts.size() + step.decodes.size());
    }
  }
  std::string svg =
      chart::SvgBegin(chart::kPictureWidth,
                      kTimelineHead + ModePanel::kHeight * static_cast<double>(modes.size())) +
      chart::SvgText(kTimelineLeft, 20, "start", 15, "When each request waited and was computed") +
      chart::SvgLegend(kTimelineLeft, 44, legend);
  for (std::size_t i = 0; i < modes.size(); ++i) {
    svg += ModePanel(modes[i], end, largest,
                     kTimelineHead + ModePanel::kHeight * static_cast<double>(i))
               .Draw();
  }
  return svg + "</svg>\n";
}

}  // namespace penstock::bench::effective
