#include "router/dispatch/step_feed.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

namespace penstock::router {
namespace {

constexpr std::uint32_t kMostReaders = 16;
constexpr std::size_t kMostSteps = 32;      // of a report
constexpr std::size_t kMostParts = 128;     // of a step
constexpr std::size_t kMostInFlight = 256;  // steps of all groups
constexpr Duration kInterval = std::chrono::milliseconds(100);

StepView ViewOf(const scheduler::StepInfo& info, const StepPlan& plan) {
  StepView view{info.group, info.step, {}, 0, info.predicted, {}};
  const std::size_t shown = std::min(plan.segments.size(), kMostParts);
  for (const Segment& segment : std::span(plan.segments).first(shown)) {
    view.parts.push_back({segment.slot, segment.Rows(), segment.kind == Segment::Kind::kPrompt});
  }
  view.parts_left_out = static_cast<std::uint32_t>(plan.segments.size() - shown);
  return view;
}

}  // namespace

bool StepFeed::Watch(std::shared_ptr<StepSink> sink) {
  const std::lock_guard lock(mutex_);
  // Without steps, no report has dropped them.
  std::erase_if(sinks_, [](const auto& reader) { return reader->HasLeft(); });
  if (closed_ || sinks_.size() >= kMostReaders) return false;
  sinks_.push_back(std::move(sink));
  readers_ = static_cast<std::uint32_t>(sinks_.size());
  return true;
}

void StepFeed::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  sinks_.clear();
  readers_ = 0;
}

void StepFeed::Sent(const scheduler::StepInfo& info, const StepPlan& plan) {
  if (!watched()) return;
  // Steps of a lost group have no end.
  if (sent_.size() >= kMostInFlight) sent_.clear();
  sent_[{info.group, info.step}] = ViewOf(info, plan);
}

void StepFeed::Done(const scheduler::StepInfo& info, Duration taken) {
  if (!watched()) return;
  auto step = sent_.extract({info.group, info.step});
  if (step.empty()) return;
  step.mapped().taken = taken;
  if (done_.size() == kMostSteps) {
    ++left_out_;
  } else {
    done_.push_back(std::move(step.mapped()));
  }
}

std::optional<Time> StepFeed::Due() const {
  if (done_.empty()) return std::nullopt;
  return reported_ + kInterval;
}

void StepFeed::Report(StepReport state, Time now) {
  reported_ = now;
  state.steps = std::exchange(done_, {});
  state.steps_left_out = std::exchange(left_out_, 0);
  const std::lock_guard lock(mutex_);
  std::erase_if(sinks_, [&state](const auto& sink) { return !sink->OnSteps(state); });
  readers_ = static_cast<std::uint32_t>(sinks_.size());
  if (sinks_.empty()) sent_.clear();
}

}  // namespace penstock::router
