// An input log as a router records it, made with simulated groups.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/log/input_log.h"
#include "scheduler/scheduler.h"
#include "sim/fleet/warm_up_table.h"
#include "sim/sim_group.h"
#include "sim/timeline.h"

namespace penstock::sim {

// 10 ms a step, and 100 us for each token.
inline Duration RecordedStepTime(const scheduler::StepShape& shape) {
  return std::chrono::milliseconds(10) +
         std::chrono::microseconds(100) * static_cast<std::int64_t>(shape.Tokens());
}

// One group with `slots` slots; a request of 50 prompt and 20 output tokens every `gap`. A step
// takes `slower` times what the warm-up says.
inline std::string RecordedLog(std::uint32_t requests, Duration gap, std::uint32_t slots,
                               double slower = 1, bool warm_up = true) {
  scheduler::Config config;
  config.max_waiting_requests = 100000;
  const GroupCapacity capacity{.blocks = 4096,
                               .block_size = 16,
                               .slots = slots,
                               .max_sequence_length = 4096,
                               .max_step_tokens = 512};
  SimGroupOptions options;
  options.contents = false;
  options.step_time = [slower](const StepPlan&, std::span<const SegmentLoad> loads) {
    scheduler::StepShape shape;
    for (const SegmentLoad& load : loads) shape.AddDecode(load.context, load.rows);
    return Duration(
        static_cast<std::int64_t>(slower * static_cast<double>(RecordedStepTime(shape).count())));
  };
  SimGroup group(capacity, std::move(options));
  scheduler::Scheduler core(config);
  scheduler::Outputs out;
  Timeline<decltype(scheduler::Input::what)> timeline;
  timeline.At(Time{}, scheduler::GroupUp{GroupId(0), Epoch(1), capacity,
                                         warm_up ? WarmUpTable(RecordedStepTime) : Calibration{}});
  for (std::uint32_t i = 0; i < requests; ++i) {
    scheduler::Arrival arrival;
    arrival.request = RequestId(i + 1);
    arrival.prompt.assign(50, static_cast<TokenId>(i + 10));
    arrival.max_new_tokens = 20;
    arrival.ignore_eos = true;
    timeline.At(Time(std::chrono::seconds(1)) + gap * i, std::move(arrival));
  }
  std::string log = scheduler::EncodeLogHeader(config);
  while (!timeline.empty()) {
    scheduler::Input input{Time{}, timeline.Next()};
    input.now = timeline.now();
    log += scheduler::EncodeInput(input);
    out.Clear();
    core.Apply(input, out);
    for (const scheduler::PlanOut& plan : out.plans) {
      auto done = group.Execute(plan.plan, timeline.now());
      timeline.At(done.at, scheduler::StepDone{plan.group, std::move(done.result)});
    }
  }
  return log;
}

}  // namespace penstock::sim
