// What each step computed, for its readers. While there is none, a step costs one atomic load.
//
// Steps are gathered for a tenth of a second and reported together. Readers, steps of a report and
// parts of a step are bounded; what is left out is counted.
//
// Threads: Watch and Close come from any thread, all else from the core's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "common/time.h"
#include "router/engine.h"
#include "scheduler/output.h"

namespace penstock::router {

class StepFeed {
 public:
  bool Watch(std::shared_ptr<StepSink> sink);
  // Drops all readers and takes no more, so that their streams do not hold up a server that stops.
  void Close();

  void Sent(const scheduler::StepInfo& info, const StepPlan& plan);
  void Done(const scheduler::StepInfo& info, Duration taken);

  // When Report must be called. Nothing: there is nothing to report.
  std::optional<Time> Due() const;
  // `state` has no steps.
  void Report(StepReport state, Time now);

 private:
  bool watched() const { return readers_.load(std::memory_order_relaxed) > 0; }

  std::atomic<std::uint32_t> readers_ = 0;  // size of sinks_
  std::mutex mutex_;
  std::vector<std::shared_ptr<StepSink>> sinks_;
  bool closed_ = false;

  std::map<std::pair<GroupId, StepId>, StepView> sent_;  // plans in flight
  std::vector<StepView> done_;
  std::uint32_t left_out_ = 0;
  Time reported_{};
};

}  // namespace penstock::router
