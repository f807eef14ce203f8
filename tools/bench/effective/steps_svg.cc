#include "tools/bench/effective/steps_svg.h"

#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "tools/chart/svg.h"

namespace penstock::bench::effective {
namespace {

constexpr std::size_t kColumns = 90;
constexpr std::size_t kMostRows = 20;
constexpr std::size_t kColumnsPerTick = 10;
constexpr double kCellWidth = 6.5;
constexpr double kCellHeight = 10;
constexpr double kLeft = 74;
constexpr double kHead = 62;   // title and legend of the whole picture
constexpr double kAbove = 26;  // title of a mode
constexpr double kBelow = 50;  // axis of a mode

std::size_t Rows(const TimelineStep& step) { return step.prompts.size() + step.decodes.size(); }

// The range of shown steps: those from `moment` on, or the last ones if too few follow `moment`.
std::pair<std::size_t, std::size_t> StepsFrom(const BatchTimeline& timeline, double moment) {
  const std::size_t steps = timeline.steps.size();
  const auto found = std::ranges::lower_bound(timeline.steps, moment, {}, &TimelineStep::begin);
  const auto from = static_cast<std::size_t>(found - timeline.steps.begin());
  const std::size_t first = std::min(from, steps - std::min(steps, kColumns));
  return {first, std::min(first + kColumns, steps)};
}

double RowsFrom(const BatchTimeline& timeline, double moment) {
  const auto [first, end] = StepsFrom(timeline, moment);
  std::size_t sum = 0;
  for (std::size_t s = first; s < end; ++s) sum += Rows(timeline.steps[s]);
  return static_cast<double>(sum);
}

// The steps of one mode, cell by cell.
class StepGrid {
 public:
  StepGrid(const BatchTimeline& timeline, double moment)
      : timeline_(timeline), rows_in_steps_(RowsFrom(timeline, moment)) {
    std::tie(first_, end_) = StepsFrom(timeline, moment);
    if (end_ > 0) ChooseRows();
  }

  double Height() const { return kCellHeight * static_cast<double>(rows_.size()); }

  std::string Title() const {
    if (end_ == 0) return ": no steps";
    return absl::StrFormat(": steps %u to %u of %u, %.1f requests in a step", first_ + 1, end_,
                           timeline_.steps.size(), rows_in_steps_ / (end_ - first_));
  }

  // Whether no shown step had several requests.
  bool OneByOne() const {
    return end_ > 0 && std::all_of(timeline_.steps.begin() + static_cast<std::ptrdiff_t>(first_),
                                   timeline_.steps.begin() + static_cast<std::ptrdiff_t>(end_),
                                   [](const TimelineStep& step) { return Rows(step) < 2; });
  }

  std::string Draw(double top, std::string_view colour) const {
    std::string waiting, prompts, decodes;
    std::vector<bool> started(timeline_.requests.size(), false);
    for (std::size_t s = 0; s < end_; ++s) {
      const TimelineStep& step = timeline_.steps[s];
      for (const std::uint32_t request : step.prompts) started[request] = true;
      if (s < first_) continue;
      for (std::size_t row = 0; row < rows_.size(); ++row) {
        const std::uint32_t request = rows_[row];
        const std::string cell = absl::StrFormat("M%g %gh%gv%gh-%gz", Column(s), top + Row(row),
                                                 kCellWidth - 1, kCellHeight - 1, kCellWidth - 1);
        if (Has(step.prompts, request)) {
          prompts += cell;
        } else if (Has(step.decodes, request)) {
          decodes += cell;
        } else if (!started[request] && timeline_.requests[request].arrival <= step.begin) {
          waiting += cell;
        }
      }
    }
    return chart::SvgArea(waiting, chart::kWaiting) + chart::SvgArea(prompts, chart::kInk) +
           chart::SvgArea(decodes, colour) + Axes(top);
  }

 private:
  static bool Has(const std::vector<std::uint32_t>& list, std::uint32_t request) {
    return std::ranges::find(list, request) != list.end();
  }

  static double Row(std::size_t row) { return kCellHeight * static_cast<double>(row); }
  double Column(std::size_t step) const {
    return kLeft + kCellWidth * static_cast<double>(step - first_);
  }

  // Takes the requests of the steps, then those that wait longest. Sorts them by arrival.
  void ChooseRows() {
    std::vector<bool> chosen(timeline_.requests.size(), false);
    std::vector<bool> ended = chosen;
    std::size_t count = 0;
    for (std::size_t s = 0; s < end_; ++s) {
      for (const auto* list : {&timeline_.steps[s].prompts, &timeline_.steps[s].decodes}) {
        for (const std::uint32_t request : *list) {
          ended[request] = s < first_;
          if (s < first_ || chosen[request] || count >= kMostRows) continue;
          chosen[request] = true;
          ++count;
        }
      }
    }
    const double until = timeline_.steps[end_ - 1].begin;
    for (const std::uint32_t request : timeline_.by_arrival) {
      if (count >= kMostRows || timeline_.requests[request].arrival >= until) break;
      if (chosen[request] || ended[request]) continue;
      chosen[request] = true;
      ++count;
    }
    for (std::size_t rank = 0; rank < timeline_.by_arrival.size(); ++rank) {
      const std::uint32_t request = timeline_.by_arrival[rank];
      if (!chosen[request]) continue;
      rows_.push_back(request);
      ranks_.push_back(rank + 1);
    }
  }

  std::string Axes(double top) const {
    std::string svg = chart::SvgText(kLeft - 6, top - 6, "end", 12, "request");
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      svg += chart::SvgText(kLeft - 6, top + Row(row) + 8, "end", 10, std::to_string(ranks_[row]));
    }
    const double bottom = top + Height();
    for (std::size_t s = first_; s < end_; ++s) {
      if ((s + 1) % kColumnsPerTick != 0) continue;
      const double x = Column(s) + (kCellWidth - 1) / 2;
      svg += chart::SvgLine(absl::StrFormat("M%.1f %.1fv4", x, bottom), chart::kInk, 1) +
             chart::SvgText(x, bottom + 16, "middle", 11, std::to_string(s + 1));
    }
    return svg + chart::SvgText(kLeft + kCellWidth * kColumns / 2, bottom + 34, "middle", 12,
                                "number of the step");
  }

  const BatchTimeline& timeline_;
  const double rows_in_steps_;
  std::size_t first_ = 0;  // shown steps: [first_, end_)
  std::size_t end_ = 0;
  std::vector<std::uint32_t> rows_;  // shown requests
  std::vector<std::size_t> ranks_;   // of these: 1 arrived first
};

// The arrival at that many thirds of all arrivals; 0 if there are none.
double ArrivalAt(const BatchTimeline& timeline, std::size_t thirds) {
  const std::size_t count = timeline.by_arrival.size();
  if (count == 0) return 0;
  return timeline.requests[timeline.by_arrival[count * thirds / 3]].arrival;
}

// Which begins of static batches may be shown.
struct Candidates {
  double from;
  double until;
  std::size_t requests;  // of the batch, at least
};

// The candidate after which the modes run the most requests.
std::optional<double> BestMoment(const std::vector<ModeTimeline>& modes,
                                 const BatchTimeline& batches, const Candidates& candidates) {
  std::optional<double> moment;
  double most = 0;
  for (const TimelineStep& step : batches.steps) {
    if (step.prompts.size() < candidates.requests || step.begin < candidates.from) continue;
    if (step.begin > candidates.until) break;
    double product = 1;
    for (const ModeTimeline& mode : modes) product *= RowsFrom(mode.timeline, step.begin);
    if (product <= most) continue;
    most = product;
    moment = step.begin;
  }
  return moment;
}

// The begin of a static batch. Between a third and two thirds of the arrivals the modes differ the
// most, but a batch of one request looks as without batching.
double Moment(const std::vector<ModeTimeline>& modes) {
  if (modes.empty()) return 0;
  const auto found = std::ranges::find_if(
      modes, [](const ModeTimeline& mode) { return mode.mode.starts_with("static"); });
  if (found == modes.end()) return ArrivalAt(modes.front().timeline, 1);
  const BatchTimeline& batches = found->timeline;
  const double first = ArrivalAt(batches, 1);
  const double last = ArrivalAt(batches, 2);
  constexpr double kAny = std::numeric_limits<double>::infinity();
  for (const Candidates& candidates :
       {Candidates{first, last, 2}, Candidates{0, kAny, 2}, Candidates{first, last, 1}}) {
    if (const auto moment = BestMoment(modes, batches, candidates)) return *moment;
  }
  return first;
}

}  // namespace

std::string StepsSvg(const std::vector<ModeTimeline>& modes) {
  const double moment = Moment(modes);
  std::string body;
  std::vector<chart::LegendEntry> legend = {{"waiting", chart::kWaiting}, {"prompt", chart::kInk}};
  double top = kHead;
  for (const ModeTimeline& mode : modes) {
    const StepGrid grid(mode.timeline, moment);
    const std::string_view colour = chart::ModeColour(mode.mode);
    legend.push_back({(legend.size() == 2 ? "generating: " : "") + mode.mode, colour});
    std::string title = mode.mode + grid.Title();
    if (mode.mode.starts_with("static") && grid.OneByOne()) {
      title += ", as no two lengths are equal";
    }
    body += chart::SvgText(kLeft, top + 12, "start", 13, title);
    body += grid.Draw(top + kAbove, colour);
    top += kAbove + grid.Height() + kBelow;
  }
  return chart::SvgBegin(chart::kPictureWidth, top) +
         chart::SvgText(kLeft, 20, "start", 15,
                        absl::StrFormat(
                            "Requests in each step, numbered by arrival, from %.2f s on", moment)) +
         chart::SvgLegend(kLeft, 44, legend) + body + "</svg>\n";
}

}  // namespace penstock::bench::effective
