#include "tools/bench/effective/timeline_svg.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tools/replay/svg_chart.h"

namespace penstock::bench::effective {
namespace {

using replay::SvgText;

constexpr const char* kWaiting = "#c4ccd6";
constexpr const char* kPrompt = "#e8890c";
constexpr double kLeft = 64;
constexpr double kRight = 16;
constexpr double kHead = 46;  // title and legend of the whole picture

template <class... Values>
std::string Format(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Rectangle(double x, double y, double width, double height, std::string_view colour) {
  return Format("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y,
                std::max(width, 0.3), height, std::string(colour).c_str());
}

// What the colours mean, from the left edge.
std::string Legend(double y, const std::vector<ModeTimeline>& modes) {
  struct Entry {
    std::string text;
    std::string_view colour;
  };
  std::vector<Entry> entries = {{"waiting", kWaiting}, {"prompt", kPrompt}};
  for (std::size_t i = 0; i < modes.size(); ++i) {
    entries.push_back({"generating, " + modes[i].mode, replay::SvgColour(i)});
  }
  std::string svg;
  double x = kLeft;
  for (const Entry& entry : entries) {
    svg += Rectangle(x, y - 7, 12, 7, entry.colour) + SvgText(x + 16, y, "start", 11, entry.text);
    x += 34 + 6.2 * static_cast<double>(entry.text.size());
  }
  return svg;
}

// Consecutive steps of one request, all prompt or all decode.
struct Stay {
  double begin = 0;
  double end = 0;
  std::size_t first_step = 0;
  std::size_t last_step = 0;
  bool prompt = false;
};

std::vector<std::vector<Stay>> Stays(const Timeline& timeline) {
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

// One mode of TimelineSvg.
class Lanes {
 public:
  static constexpr double kWidth = 1000;
  static constexpr double kRows = 300;  // height of all requests together
  static constexpr double kBatch = 56;  // of the batch size
  static constexpr double kHeight = kRows + kBatch + 84;

  Lanes(const ModeTimeline& mode, std::string_view colour, double end, std::size_t largest,
        double top)
      : timeline_(mode.timeline),
        name_(mode.mode),
        colour_(colour),
        ticks_(replay::TicksFor(end)),
        batch_(replay::TicksFor(static_cast<double>(largest))),
        top_(top) {}

  std::string Draw() const {
    std::string svg = SvgText(kLeft, top_ + 14, "start", 13, Title());
    svg += SvgText(kLeft - 8, Row(0) + 8, "end", 10, "first") +
           SvgText(kLeft - 8, Row(timeline_.requests.size()), "end", 10, "last") +
           SvgText(kLeft - 8, Row(0) + kRows / 2, "end", 10, "request");
    svg += Grid();
    const auto stays = Stays(timeline_);
    for (std::size_t r = 0; r < stays.size(); ++r) svg += Lane(r, stays[r]);
    return svg + BatchSize() +
           SvgText(kLeft + Width() / 2, BatchBottom() + 28, "middle", 11,
                   "seconds since the first arrival");
  }

 private:
  static double Width() { return kWidth - kLeft - kRight; }
  double X(double seconds) const { return kLeft + seconds / ticks_.End() * Width(); }
  double Row(std::size_t request) const {
    const auto count = std::max<std::size_t>(timeline_.requests.size(), 1);
    return top_ + 22 + kRows * static_cast<double>(request) / static_cast<double>(count);
  }
  double BatchBottom() const { return top_ + 22 + kRows + 10 + kBatch; }

  std::string Title() const {
    return name_ + Format(": %zu requests in %zu steps, done after %.1f s",
                          timeline_.requests.size(), timeline_.steps.size(), timeline_.end);
  }

  std::string Grid() const {
    std::string svg;
    for (int i = 0; i <= ticks_.count; ++i) {
      const double value = i * ticks_.step;
      svg += Format("<path d=\"M%.1f %.1fV%.1f\" stroke=\"#e6eaef\"/>\n", X(value), Row(0),
                    BatchBottom()) +
             SvgText(X(value), BatchBottom() + 13, "middle", 10, Format("%g", value));
    }
    return svg;
  }

  std::string Lane(std::size_t request, const std::vector<Stay>& stays) const {
    if (stays.empty()) return "";
    const TimelineRequest& facts = timeline_.requests[request];
    const double y = Row(request);
    const double height = std::max(Row(request + 1) - y - 0.6, 0.5);
    std::string svg =
        "<g><title>" +
        Format("request %zu: %u tokens, arrived at %.3f s, waited %.3f s, steps %zu to %zu",
               request, facts.num_tokens, facts.arrival, stays.front().begin - facts.arrival,
               stays.front().first_step + 1, stays.back().last_step + 1) +
        "</title>\n";
    double from = facts.arrival;
    for (const Stay& stay : stays) {
      if (stay.begin > from) {
        svg +=
            Rectangle(X(from), y + height * 0.3, X(stay.begin) - X(from), height * 0.4, kWaiting);
      }
      svg += Rectangle(X(stay.begin), y, X(stay.end) - X(stay.begin), height,
                       stay.prompt ? std::string_view(kPrompt) : colour_);
      from = stay.end;
    }
    return svg + "</g>\n";
  }

  std::string BatchSize() const {
    const auto y = [&](double rows) { return BatchBottom() - rows / batch_.End() * kBatch; };
    std::string path = Format("M%.1f %.1f", X(0), y(0));
    std::size_t last = 0;
    double idle_from = 0;
    for (const TimelineStep& step : timeline_.steps) {
      const std::size_t rows = step.prompts.size() + step.decodes.size();
      if (last > 0 && step.begin - idle_from > 1e-3) {
        path += Format("H%.1fV%.1f", X(idle_from), y(0));
        last = 0;
      }
      if (rows != last) {
        path += Format("H%.1fV%.1f", X(step.begin), y(static_cast<double>(rows)));
        last = rows;
      }
      idle_from = step.end;
    }
    path += Format("H%.1fV%.1f", X(idle_from), y(0));
    return Format("<path d=\"M%.1f %.1fH%.1f\" stroke=\"#8c959f\"/>\n", kLeft, y(0),
                  kLeft + Width()) +
           "<path d=\"" + path + "Z\" fill=\"" + std::string(colour_) +
           "\" fill-opacity=\"0.25\" stroke=\"" + std::string(colour_) + "\"/>\n" +
           SvgText(kLeft - 8, y(batch_.End()) + 8, "end", 10, Format("%g", batch_.End())) +
           SvgText(kLeft - 8, y(0), "end", 10, "0") +
           SvgText(kLeft - 8, y(batch_.End() / 2) + 4, "end", 10, "in step");
  }

  const Timeline& timeline_;
  const std::string& name_;
  const std::string_view colour_;
  const replay::SvgTicks ticks_;
  const replay::SvgTicks batch_;
  const double top_;
};

constexpr std::size_t kColumns = 120;
constexpr std::size_t kMostRows = 20;
constexpr double kCell = 7;  // a square of 6 and a gap

std::size_t ShownRequests(const Timeline& timeline) {
  const std::size_t steps = std::min(kColumns, timeline.steps.size());
  std::size_t shown = 0;
  for (std::size_t s = 0; s < steps; ++s) {
    for (const auto* list : {&timeline.steps[s].prompts, &timeline.steps[s].decodes}) {
      for (const std::uint32_t request : *list) shown = std::max<std::size_t>(shown, request + 1);
    }
  }
  // Those who wait meanwhile, too.
  const double until = steps > 0 ? timeline.steps[steps - 1].begin : 0;
  while (shown < timeline.requests.size() && timeline.requests[shown].arrival < until) ++shown;
  return std::min(shown, kMostRows);
}

// One path per colour: there are thousands of cells.
std::string Cells(const Timeline& timeline, std::string_view colour, double top,
                  std::size_t shown) {
  std::string waiting, prompts, decodes;
  std::vector<bool> started(shown, false);
  for (std::size_t s = 0; s < std::min(kColumns, timeline.steps.size()); ++s) {
    const TimelineStep& step = timeline.steps[s];
    const auto add = [&](std::string& path, std::size_t request) {
      if (request >= shown) return;
      path += Format("M%g %gh6v6h-6z", kLeft + kCell * static_cast<double>(s),
                     top + kCell * static_cast<double>(request));
    };
    for (const std::uint32_t request : step.prompts) {
      if (request < shown) started[request] = true;
      add(prompts, request);
    }
    for (const std::uint32_t request : step.decodes) add(decodes, request);
    for (std::size_t r = 0; r < shown; ++r) {
      if (!started[r] && timeline.requests[r].arrival <= step.begin) add(waiting, r);
    }
  }
  std::string svg;
  const std::pair<const std::string*, std::string_view> paths[] = {
      {&waiting, kWaiting}, {&prompts, kPrompt}, {&decodes, colour}};
  for (const auto& [path, fill] : paths) {
    if (!path->empty()) svg += "<path d=\"" + *path + "\" fill=\"" + std::string(fill) + "\"/>\n";
  }
  return svg;
}

}  // namespace

std::string TimelineSvg(const std::vector<ModeTimeline>& modes) {
  double end = 0;
  std::size_t largest = 1;
  for (const ModeTimeline& mode : modes) {
    end = std::max(end, mode.timeline.end);
    for (const TimelineStep& step : mode.timeline.steps) {
      largest = std::max(largest, step.prompts.size() + step.decodes.size());
    }
  }
  std::string svg =
      replay::SvgBegin(Lanes::kWidth, kHead + Lanes::kHeight * static_cast<double>(modes.size()));
  svg += SvgText(kLeft, 18, "start", 14, "Who was in the batch, and when") + Legend(36, modes);
  for (std::size_t i = 0; i < modes.size(); ++i) {
    svg += Lanes(modes[i], replay::SvgColour(i), end, largest,
                 kHead + Lanes::kHeight * static_cast<double>(i))
               .Draw();
  }
  return svg + "</svg>\n";
}

std::string StepsSvg(const std::vector<ModeTimeline>& modes) {
  std::string body;
  double top = kHead;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const Timeline& timeline = modes[i].timeline;
    const std::size_t shown = ShownRequests(timeline);
    body += SvgText(kLeft, top + 14, "start", 13, modes[i].mode);
    body += SvgText(kLeft - 8, top + 30, "end", 10, "request 0");
    if (shown > 1) {
      body += SvgText(kLeft - 8, top + 22 + kCell * static_cast<double>(shown), "end", 10,
                      std::to_string(shown - 1));
    }
    body += Cells(timeline, replay::SvgColour(i), top + 22, shown);
    top += 22 + kCell * static_cast<double>(shown);
    for (std::size_t s = 20; s <= kColumns; s += 20) {
      body += SvgText(kLeft + kCell * (static_cast<double>(s) - 0.5), top + 11, "middle", 10,
                      std::to_string(s));
    }
    top += 26;
  }
  body += SvgText(kLeft + kCell * kColumns / 2, top + 6, "middle", 11,
                  "engine step, from the first of the run");
  return replay::SvgBegin(kLeft + kCell * kColumns + kRight, top + 14) +
         SvgText(kLeft, 18, "start", 14, "The first steps, one by one") + Legend(36, modes) + body +
         "</svg>\n";
}

}  // namespace penstock::bench::effective
