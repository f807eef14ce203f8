#include "tests/bench/core/route_cost.h"

#include <chrono>
#include <deque>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"

namespace penstock::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kLongest = 131'072;

class Fleet {
 public:
  Fleet(std::uint32_t groups, std::uint32_t blocks, std::uint32_t block_size)
      : scheduler_(Settings()) {
    GroupCapacity capacity;
    capacity.blocks = blocks;
    capacity.block_size = block_size;
    capacity.slots = 64;
    capacity.max_sequence_length = kLongest;
    capacity.max_step_tokens = kLongest;
    for (std::uint32_t i = 0; i < groups; ++i) {
      Apply(scheduler::GroupUp{GroupId(i), Epoch(1), capacity, {}});
    }
  }

  // Microseconds of the arrival alone.
  double Route(std::vector<TokenId> prompt) {
    scheduler::Arrival arrival;
    arrival.request = RequestId(++last_request_);
    arrival.prompt = std::move(prompt);
    arrival.max_new_tokens = 1;
    const double time = Apply(std::move(arrival));
    while (!results_.empty()) {
      scheduler::StepDone done = std::move(results_.front());
      results_.pop_front();
      Apply(std::move(done));
    }
    return time;
  }

 private:
  static scheduler::Config Settings() {
    scheduler::Config config;
    config.max_step_tokens = kLongest;
    return config;
  }

  double Apply(decltype(scheduler::Input::what) what) {
    const scheduler::Input input{Time{}, std::move(what)};
    out_.Clear();
    const auto start = Clock::now();
    scheduler_.Apply(input, out_);
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    for (const scheduler::PlanOut& plan : out_.plans) Execute(plan);
    return time.count();
  }

  void Execute(const scheduler::PlanOut& plan) {
    scheduler::StepDone done;
    done.group = plan.group;
    done.result.epoch = plan.plan.epoch;
    done.result.step = plan.plan.step;
    for (const Segment& segment : plan.plan.segments) {
      if (segment.logits == Segment::Logits::kNone) continue;
      SequenceResult& part = done.result.sequences.emplace_back();
      part.slot = segment.slot;
      part.sequence = plan.plan.starts.at(0).sequence;  // one request at a time, in one step
      part.tokens.resize(1);
    }
    results_.push_back(std::move(done));
  }

  scheduler::Scheduler scheduler_;
  scheduler::Outputs out_;
  std::deque<scheduler::StepDone> results_;
  std::uint64_t last_request_ = 0;
};

}  // namespace

Percentiles MeasureRoutes(const sim::Trace& trace, std::uint32_t groups, std::uint32_t blocks) {
  Fleet fleet(groups, blocks, trace.block_tokens);
  std::vector<double> times;
  times.reserve(trace.requests.size());
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    std::vector<TokenId> prompt = sim::MakePrompt(trace, i);
    if (prompt.size() >= kLongest) continue;
    times.push_back(fleet.Route(std::move(prompt)));
  }
  return Summarise(std::move(times));
}

}  // namespace penstock::bench
