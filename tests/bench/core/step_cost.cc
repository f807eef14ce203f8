#include "tests/bench/core/step_cost.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"
#include "tests/bench/core/allocations.h"

namespace penstock::bench {
namespace {

using Clock = std::chrono::steady_clock;

// A group that costs little compared with the core. It reuses one result per plan in flight, as a
// shell does that reads results into the same memory.
class Driver {
 public:
  explicit Driver(const StepCostOptions& options)
      : options_(options), scheduler_(Settings(options)), sequences_(options.running + 1) {}

  StepCost Run() {
    GroupCapacity capacity;
    capacity.slots = options_.running;
    capacity.block_size = 16;
    capacity.blocks = options_.running * 1024;
    capacity.max_sequence_length = 16384;
    capacity.max_step_tokens = 8192;
    for (std::uint32_t i = 0; i < options_.running + options_.queued; ++i) Arrive();
    Apply(scheduler::GroupUp{GroupId(0), Epoch(1), capacity, {}});
    for (int i = 0; i < 600; ++i) Step();
    if (scheduler_.Inspect().running != options_.running) std::abort();

    std::vector<double> times;
    times.reserve(options_.steps);
    const std::uint64_t before = Allocations();
    for (std::uint32_t i = 0; i < options_.steps; ++i) times.push_back(Step());
    StepCost cost;
    cost.allocations_per_step =
        static_cast<double>(Allocations() - before) / static_cast<double>(options_.steps);
    cost.microseconds = Summarise(std::move(times));
    return cost;
  }

 private:
  static scheduler::Config Settings(const StepCostOptions& options) {
    scheduler::Config config;
    config.max_step_tokens = 2048;
    config.max_waiting_requests = options.running + options.queued + 1;
    return config;
  }

  void Arrive() {
    scheduler::Arrival arrival;
    arrival.request = RequestId(++last_request_);
    arrival.prompt.assign(64, static_cast<TokenId>(last_request_));
    arrival.ignore_eos = true;
    arrival.max_new_tokens = options_.churn ? options_.running + last_request_ % 16 : 8000;
    Apply(std::move(arrival));
  }

  void Apply(decltype(scheduler::Input::what) what) {
    const scheduler::Input input{now_, std::move(what)};
    out_.Clear();
    scheduler_.Apply(input, out_);
    Take();
  }

  // Answers the oldest plan in flight; microseconds that the core took.
  double Step() {
    scheduler::Input& input = results_[first_++ % results_.size()];
    now_ += std::chrono::milliseconds(10);
    input.now = now_;
    out_.Clear();
    const auto start = Clock::now();
    scheduler_.Apply(input, out_);
    const std::chrono::duration<double, std::micro> time = Clock::now() - start;
    const std::size_t ended = Take();
    for (std::size_t i = 0; options_.churn && i < ended; ++i) Arrive();
    return time.count();
  }

  // Makes the results of the plans; returns how many requests have ended.
  std::size_t Take() {
    for (const scheduler::PlanOut& plan : out_.plans) Execute(plan.plan);
    std::size_t ended = 0;
    for (const scheduler::Event& event : out_.events) {
      if (std::holds_alternative<scheduler::Failed>(event.what)) std::abort();
      ended += std::holds_alternative<scheduler::Finished>(event.what) ? 1 : 0;
    }
    return ended;
  }

  void Execute(const StepPlan& plan) {
    for (const SequenceStart& start : plan.starts) {
      if (start.slot.value() >= sequences_.size()) sequences_.resize(start.slot.value() + 1);
      sequences_[start.slot.value()] = start.sequence;
    }
    scheduler::Input& input = results_[next_++ % results_.size()];
    if (!std::holds_alternative<scheduler::StepDone>(input.what))
      input.what = scheduler::StepDone{};
    auto& done = std::get<scheduler::StepDone>(input.what);
    done.result.epoch = plan.epoch;
    done.result.step = plan.step;
    done.result.sequences.resize(plan.segments.size());
    for (std::size_t i = 0; i < plan.segments.size(); ++i) {
      const Segment& segment = plan.segments[i];
      SequenceResult& part = done.result.sequences[i];
      const bool samples =
          segment.kind == Segment::Kind::kDecode || segment.logits != Segment::Logits::kNone;
      part.slot = segment.slot;
      part.sequence = sequences_[segment.slot.value()];
      part.tokens.resize(samples ? 1 : 0);
      if (samples) part.tokens[0].token = 7;
    }
  }

  const StepCostOptions options_;
  scheduler::Scheduler scheduler_;
  scheduler::Outputs out_;
  std::vector<SequenceId> sequences_;  // by slot
  std::vector<scheduler::Input> results_{4};
  std::size_t first_ = 0;  // the oldest in flight
  std::size_t next_ = 0;   // after the newest
  Time now_{};
  std::uint64_t last_request_ = 0;
};

}  // namespace

StepCost MeasureSteps(const StepCostOptions& options) { return Driver(options).Run(); }

}  // namespace penstock::bench
