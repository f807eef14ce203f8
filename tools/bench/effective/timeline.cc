#include "tools/bench/effective/timeline.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "scheduler/log/input_log.h"
#include "scheduler/scheduler.h"

namespace penstock::bench::effective {
namespace {

using scheduler::Outputs;

class Reader {
 public:
  explicit Reader(const std::vector<std::uint64_t>& ids) {
    for (std::uint32_t i = 0; i < ids.size(); ++i) numbers_[RequestId(ids[i])] = i;
    timeline_.requests.resize(ids.size());
  }

  void See(const scheduler::Input& input, const Outputs& out) {
    if (const auto* arrival = std::get_if<scheduler::Arrival>(&input.what)) {
      Arrived(*arrival, input.now);
    } else if (const auto* done = std::get_if<scheduler::StepDone>(&input.what)) {
      Done(*done, input.now);
    }
    for (const scheduler::PlanOut& plan : out.plans) Planned(plan, input.now);
  }

  BatchTimeline Take() {
    std::ranges::sort(timeline_.steps, {}, &TimelineStep::begin);
    for (const TimelineStep& step : timeline_.steps) {
      timeline_.end = std::max(timeline_.end, step.end);
    }
    return std::move(timeline_);
  }

 private:
  // The state of one group. A slot keeps its request until another one starts in it.
  struct Group {
    std::unordered_map<std::uint32_t, std::uint32_t> slots;
    std::unordered_map<std::uint64_t, TimelineStep> in_flight;
    double done = 0;  // when the last result came
  };

  double Seconds(Time at) const {
    return zero_ ? std::chrono::duration<double>(at - *zero_).count() : 0;
  }

  void Arrived(const scheduler::Arrival& arrival, Time now) {
    const auto found = numbers_.find(arrival.request);
    if (found == numbers_.end()) return;
    if (!zero_) zero_ = now;
    timeline_.by_arrival.push_back(found->second);
    timeline_.requests[found->second] = {Seconds(now), arrival.max_new_tokens};
  }

  void Planned(const scheduler::PlanOut& out, Time now) {
    Group& group = groups_[out.group.value()];
    for (std::size_t i = 0; i < out.plan.starts.size(); ++i) {
      const auto found = numbers_.find(out.requests[i]);
      const std::uint32_t slot = out.plan.starts[i].slot.value();
      if (found == numbers_.end()) {
        group.slots.erase(slot);
      } else {
        group.slots[slot] = found->second;
      }
    }
    TimelineStep step;
    step.begin = Seconds(now);
    for (const Segment& segment : out.plan.segments) {
      const auto found = group.slots.find(segment.slot.value());
      if (found == group.slots.end()) continue;
      const bool prompt = segment.kind == Segment::Kind::kPrompt;
      (prompt ? step.prompts : step.decodes).push_back(found->second);
    }
    if (step.prompts.empty() && step.decodes.empty()) return;
    group.in_flight[out.plan.step.value()] = std::move(step);
  }

  // A plan that was sent while another one ran began at the end of that one.
  void Done(const scheduler::StepDone& done, Time now) {
    Group& group = groups_[done.group.value()];
    const auto found = group.in_flight.find(done.result.step.value());
    if (found != group.in_flight.end()) {
      TimelineStep step = std::move(found->second);
      group.in_flight.erase(found);
      step.begin = std::max(step.begin, group.done);
      step.end = Seconds(now);
      timeline_.steps.push_back(std::move(step));
    }
    group.done = Seconds(now);
  }

  std::unordered_map<RequestId, std::uint32_t> numbers_;
  std::unordered_map<std::uint32_t, Group> groups_;
  std::optional<Time> zero_;
  BatchTimeline timeline_;
};

}  // namespace

absl::StatusOr<BatchTimeline> ReadTimeline(std::string_view log,
                                           const std::vector<std::uint64_t>& ids) {
  scheduler::InputLogReader reader(log);
  const auto config = reader.ReadHeader();
  if (!config) return absl::InvalidArgumentError(reader.error());
  if (const auto why = scheduler::WhyInvalid(*config)) return absl::InvalidArgumentError(*why);
  scheduler::Scheduler core(*config);
  Reader steps(ids);
  Outputs out;
  for (auto input = reader.Next(); input; input = reader.Next()) {
    out.Clear();
    core.Apply(*input, out);
    steps.See(*input, out);
  }
  if (!reader.error().empty()) return absl::InvalidArgumentError(reader.error());
  return steps.Take();
}

}  // namespace penstock::bench::effective
