#include "sim/fleet/fleet.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "scheduler/scheduler.h"
#include "sim/fleet/padded_batch.h"
#include "sim/fleet/warm_up_table.h"
#include "sim/sim_group.h"
#include "sim/timeline.h"

namespace penstock::sim {
namespace {

using scheduler::Outputs;
using scheduler::StepShape;

StepShape ShapeOf(std::span<const SegmentLoad> loads) {
  StepShape shape;
  for (const SegmentLoad& load : loads) {
    if (load.kind == Segment::Kind::kPrompt) {
      shape.AddChunk(load.context, load.rows);
    } else {
      shape.AddDecode(load.context, load.rows);
    }
  }
  return shape;
}

class Fleet {
 public:
  Fleet(const Trace& trace, const FleetOptions& options)
      : trace_(trace), options_(options), scheduler_(options.config) {
    result_.requests.resize(trace.requests.size());
    result_.computed_tokens.resize(options.groups);
    last_token_.resize(trace.requests.size());
    for (std::uint32_t i = 0; i < options.groups; ++i)
      groups_.emplace_back(options.capacity, Group());
  }

  absl::StatusOr<FleetResult> Run() {
    const Calibration table =
        options_.warm_up ? *options_.warm_up : WarmUpTable(options_.step_time);
    for (std::uint32_t i = 0; i < options_.groups; ++i) {
      Apply(scheduler::GroupUp{GroupId(i), Epoch(1), options_.capacity, table});
    }
    ScheduleArrival(0);
    while (!timeline_.empty()) {
      Event event = timeline_.Next();
      std::visit([this](auto& what) { Happen(what); }, event);
    }
    for (const SimGroup& group : groups_) {
      if (!group.violations().empty()) return absl::InternalError(group.violations().front());
    }
    result_.end = Now();
    return std::move(result_);
  }

 private:
  struct Arrive {
    std::size_t index = 0;
  };
  using Event = std::variant<Arrive, scheduler::StepDone>;

  SimGroupOptions Group() {
    SimGroupOptions group;
    group.contents = false;
    group.step_time = [this](const StepPlan&, std::span<const SegmentLoad> loads) {
      const StepShape shape = ShapeOf(loads);
      return options_.step_time(options_.padded_batches ? batch_.Pad(shape, loads) : shape);
    };
    return group;
  }

  Duration Now() const { return timeline_.now() - Time{}; }
  RequestRecord& Record(RequestId request) { return result_.requests[request.value() - 1]; }

  // The trace is in order, so the timeline holds one arrival at a time.
  void ScheduleArrival(std::size_t index) {
    if (index < trace_.requests.size()) {
      timeline_.At(Time(trace_.requests[index].arrival), Arrive{index});
    }
  }

  void Happen(const Arrive& arrive) {
    ScheduleArrival(arrive.index + 1);
    const TraceRequest& request = trace_.requests[arrive.index];
    RequestRecord& record = result_.requests[arrive.index];
    record.arrival = request.arrival;
    record.prompt_tokens = request.prompt_tokens;
    scheduler::Arrival arrival =
        options_.make_request ? options_.make_request(arrive.index) : FromTrace(arrive.index);
    arrival.request = RequestId(arrive.index + 1);
    Apply(std::move(arrival));
  }

  scheduler::Arrival FromTrace(std::size_t index) const {
    const std::uint32_t output = trace_.requests[index].output_tokens;
    scheduler::Arrival arrival;
    arrival.prompt = MakePrompt(trace_, index);
    arrival.max_new_tokens = std::max(output, options_.declared_output.value_or(1));
    arrival.ignore_eos = true;
    if (options_.forecasts.empty()) return arrival;
    const bool learned = options_.config.order == scheduler::Order::kLearned;
    arrival.length_given = !learned;  // a given length would bound the forecast by the truth
    (learned ? arrival.ranked_tokens : arrival.predicted_tokens) = options_.forecasts[index];
    return arrival;
  }

  void Happen(scheduler::StepDone& done) { Apply(std::move(done)); }

  // Applies an input, then the ends that its outputs cause.
  void Apply(decltype(scheduler::Input::what) what) {
    scheduler::Input input{timeline_.now(), std::move(what)};
    while (true) {
      out_.Clear();
      scheduler_.Apply(input, out_);
      TakeOutputs();
      if (ends_.empty()) return;
      input.what = ends_.front();
      ends_.pop_front();
    }
  }

  // Events before decisions, so that a batch ends before the next one begins.
  void TakeOutputs() {
    for (const scheduler::Event& event : out_.events) {
      std::visit([&](const auto& what) { On(event.request, what); }, event.what);
    }
    for (const Decision& decision : out_.decisions) Note(decision);
    for (const scheduler::StepInfo& info : out_.steps) Note(info);
    for (const scheduler::PlanOut& plan : out_.plans) Send(plan);
  }

  void Send(const scheduler::PlanOut& out) {
    auto done = groups_[out.group.value()].Execute(out.plan, timeline_.now());
    timeline_.At(done.at, scheduler::StepDone{out.group, std::move(done.result)});
  }

  void Note(const Decision& decision) {
    if (decision.kind == DecisionKind::kPreempted) {
      ++Record(decision.request).preemptions;
    } else if (decision.kind == DecisionKind::kAdmitted && options_.padded_batches) {
      batch_.Join(decision.request.value() - 1);
    }
  }

  void Note(const scheduler::StepInfo& info) {
    ++result_.step_count;
    result_.most_decode_rows = std::max(result_.most_decode_rows, info.decode_rows);
    result_.computed_tokens[info.group.value()] += info.prefill_tokens;
    if (!options_.keep_steps) return;
    result_.steps.push_back({Now(), info.group.value(), info.decode_rows, info.prefill_tokens,
                             info.waiting, info.blocks_free});
  }

  void On(RequestId request, const scheduler::Started& started) {
    RequestRecord& record = Record(request);
    if (record.preemptions == 0) record.cached_tokens = started.cached_tokens;
  }

  void On(RequestId request, const scheduler::Tokens& tokens) {
    const std::size_t index = request.value() - 1;
    RequestRecord& record = result_.requests[index];
    if (record.first_token) {
      const Duration gap = Now() - last_token_[index];
      record.worst_gap = std::max(record.worst_gap, gap);
      result_.gaps_ms.push_back(Milliseconds(gap));
    } else {
      record.first_token = Now();
    }
    last_token_[index] = Now();
    record.output_tokens = tokens.first_index + static_cast<std::uint32_t>(tokens.tokens.size());
    const std::uint32_t wanted = trace_.requests[index].output_tokens;
    const bool end_is_found = options_.declared_output || options_.make_request;
    if (end_is_found && record.output_tokens >= wanted) {
      ends_.push_back({request, wanted});
    }
  }

  void On(RequestId, const scheduler::PromptLogprobs&) {}

  void On(RequestId request, const scheduler::Finished& finished) {
    RequestRecord& record = Record(request);
    record.output_tokens = finished.generated_tokens;
    record.end = Now();
    if (!options_.padded_batches || !batch_.Leave()) return;
    for (const std::size_t member : batch_.Take()) result_.requests[member].end = Now();
  }

  void On(RequestId, const scheduler::Failed& failed) {
    if (result_.first_error.empty()) result_.first_error = failed.message;
  }

  const Trace& trace_;
  const FleetOptions& options_;
  scheduler::Scheduler scheduler_;
  std::vector<SimGroup> groups_;
  Timeline<Event> timeline_;
  Outputs out_;
  std::deque<scheduler::FinishAt> ends_;  // found in the outputs, not applied yet
  std::vector<Duration> last_token_;      // per request
  PaddedBatch batch_;
  FleetResult result_;
};

absl::Status Check(const Trace& trace, const FleetOptions& options) {
  if (const auto why = WhyInvalid(options.config)) return absl::InvalidArgumentError(*why);
  const bool request_level = options.config.batching != scheduler::Batching::kContinuous;
  if (options.padded_batches && (options.groups > 1 || !request_level)) {
    return absl::InvalidArgumentError(
        "padded batches need one replica and `batching` none or static");
  }
  if (!options.forecasts.empty() && options.forecasts.size() != trace.requests.size()) {
    return absl::InvalidArgumentError("there must be one forecast for each request");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FleetResult> RunFleet(const Trace& trace, const FleetOptions& options) {
  if (absl::Status status = Check(trace, options); !status.ok()) return status;
  return Fleet(trace, options).Run();
}

}  // namespace penstock::sim
