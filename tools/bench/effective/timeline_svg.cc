#include "tools/bench/effective/timeline_svg.h"

#include <absl/strings/str_format.h>

#include <algorithm>
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

std::string Rectangle(double x, double y, double width, double height, std::string_view colour) {
  return absl::StrFormat(
      "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y,
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
    return name_ + absl::StrFormat(": %zu requests in %zu steps, done after %.1f s",
                                   timeline_.requests.size(), timeline_.steps.size(),
                                   timeline_.end);
  }

  std::string Grid() const {
    std::string svg;
    for (int i = 0; i <= ticks_.count; ++i) {
      const double value = i * ticks_.step;
      svg += absl::StrFormat("<path d=\"M%.1f %.1fV%.1f\" stroke=\"#e6eaef\"/>\n", X(value), Row(0),
                             BatchBottom()) +
             SvgText(X(value), BatchBottom() + 13, "middle", 10, absl::StrFormat("%g", value));
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
        absl::StrFormat(
            "request %zu: %u tokens, arrived at %.3f s, waited %.3f s, steps %zu to %zu", request,
            facts.num_tokens, facts.arrival, stays.front().begin - facts.arrival,
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
    path += absl::StrFormat("H%.1fV%.1f", X(idle_from), y(0));
    return absl::StrFormat("<path d=\"M%.1f %.1fH%.1f\" stroke=\"#8c959f\"/>\n", kLeft, y(0),
                           kLeft + Width()) +
           "<path d=\"" + path + "Z\" fill=\"" + std::string(colour_) +
           "\" fill-opacity=\"0.25\" stroke=\"" + std::string(colour_) + "\"/>\n" +
           SvgText(kLeft - 8, y(batch_.End()) + 8, "end", 10, absl::StrFormat("%g", batch_.End())) +
           SvgText(kLeft - 8, y(0), "end", 10, "0") +
           SvgText(kLeft - 8, y(batch_.End() / 2) + 4, "end", 10, "in step");
  }

  const BatchTimeline& timeline_;
  const std::string& name_;
  const std::string_view colour_;
  const replay::SvgTicks ticks_;
  const replay::SvgTicks batch_;
  const double top_;
};

constexpr std::size_t kColumns = 120;
constexpr std::size_t kMostRows = 20;
constexpr double kCell = 7;  // a square of 6 and a gap

// Some consecutive steps of one mode, cell by cell.
class Film {
 public:
  // Begins when a third of the requests have arrived. By then the modes differ.
  explicit Film(const BatchTimeline& timeline) : timeline_(timeline) {
    if (timeline.steps.empty()) return;
    const double from = timeline.requests[timeline.requests.size() / 3].arrival;
    while (first_ + 1 < timeline.steps.size() && timeline.steps[first_].begin < from) ++first_;
    end_ = std::min(first_ + kColumns, timeline.steps.size());
    ChooseRows();
  }

  double Height() const { return kCell * static_cast<double>(rows_.size()); }
  std::size_t first_step() const { return first_; }

  std::string Draw(double top, std::string_view colour) const {
    std::string waiting, prompts, decodes;
    std::vector<bool> started(timeline_.requests.size(), false);
    for (std::size_t s = 0; s < end_; ++s) {
      const TimelineStep& step = timeline_.steps[s];
      for (const std::uint32_t request : step.prompts) started[request] = true;
      if (s < first_) continue;
      const double x = kLeft + kCell * static_cast<double>(s - first_);
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        const std::uint32_t request = rows_[row];
        const std::string cell =
            absl::StrFormat("M%g %gh6v6h-6z", x, top + kCell * static_cast<double>(row));
        if (Has(step.prompts, request)) {
          prompts += cell;
        } else if (Has(step.decodes, request)) {
          decodes += cell;
        } else if (!started[request] && timeline_.requests[request].arrival <= step.begin) {
          waiting += cell;
        }
      }
    }
    return Path(waiting, kWaiting) + Path(prompts, kPrompt) + Path(decodes, colour) + Numbers(top);
  }

 private:
  static bool Has(const std::vector<std::uint32_t>& list, std::uint32_t request) {
    return std::ranges::find(list, request) != list.end();
  }

  // One path per colour: there are thousands of cells.
  static std::string Path(const std::string& cells, std::string_view colour) {
    if (cells.empty()) return "";
    return "<path d=\"" + cells + "\" fill=\"" + std::string(colour) + "\"/>\n";
  }

  // Takes the requests of the steps, then those that wait longest. Sorts them by arrival.
  void ChooseRows() {
    std::vector<bool> seen(timeline_.requests.size(), false);
    std::vector<bool> started = seen;
    for (std::size_t s = 0; s < end_; ++s) {
      for (const auto* list : {&timeline_.steps[s].prompts, &timeline_.steps[s].decodes}) {
        for (const std::uint32_t request : *list) {
          started[request] = true;
          if (s < first_ || seen[request] || rows_.size() >= kMostRows) continue;
          seen[request] = true;
          rows_.push_back(request);
        }
      }
    }
    const double until = timeline_.steps[end_ - 1].begin;
    for (std::uint32_t r = 0; r < started.size() && rows_.size() < kMostRows; ++r) {
      if (!started[r] && timeline_.requests[r].arrival < until) rows_.push_back(r);
    }
    std::ranges::sort(rows_);
  }

  std::string Numbers(double top) const {
    std::string svg;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      svg += SvgText(kLeft - 6, top + kCell * static_cast<double>(row) + 6, "end", 7,
                     std::to_string(rows_[row]));
    }
    return svg;
  }

  const BatchTimeline& timeline_;
  std::size_t first_ = 0;  // shown steps: [first_, end_)
  std::size_t end_ = 0;
  std::vector<std::uint32_t> rows_;  // shown requests
};

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
    const Film film(modes[i].timeline);
    body += SvgText(kLeft, top + 14, "start", 13,
                    modes[i].mode + absl::StrFormat(", steps from %zu", film.first_step() + 1)) +
            SvgText(kLeft - 6, top + 14, "end", 9, "request");
    top += 22;
    body += film.Draw(top, replay::SvgColour(i));
    top += film.Height() + 12;
  }
  return replay::SvgBegin(kLeft + kCell * kColumns + kRight, top) +
         SvgText(kLeft, 18, "start", 14, "Step by step, from the same moment in each mode") +
         Legend(36, modes) + body + "</svg>\n";
}

}  // namespace penstock::bench::effective
