#include "sim/fleet/recorded_run.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "common/check.h"
#include "common/status.h"
#include "scheduler/log/input_log.h"
#include "scheduler/scheduler.h"
#include "sim/fleet/step_fit.h"

namespace penstock::sim {
namespace {

// What a request did so far.
struct Course {
  scheduler::Arrival arrival;
  Time arrived;
  RequestRecord record;
  Time last_token;
  std::map<Budget, Duration> waited;
  std::optional<std::pair<Budget, Time>> waits;  // since when, for what
};

// The plans of a group that have no result yet, and the lengths of its sequences.
class GroupSteps {
 public:
  void Planned(const StepPlan& plan, Time now) {
    scheduler::StepShape shape;
    for (const SequenceStart& start : plan.starts) lengths_[start.slot] = start.prompt_length;
    for (const Segment& segment : plan.segments) {
      if (segment.kind == Segment::Kind::kPrompt) {
        shape.AddChunk(segment.first, segment.count);
      } else {
        shape.AddDecode(lengths_[segment.slot], segment.max_rows);
        ++lengths_[segment.slot];
      }
    }
    in_flight_[plan.step] = {shape, now};
  }

  // nullopt for a plan without work, and for one that is not known.
  std::optional<TimedStep> Done(const StepResult& result, Time now) {
    const auto it = in_flight_.find(result.step);
    if (it == in_flight_.end()) return std::nullopt;
    const auto [shape, sent] = it->second;
    in_flight_.erase(it);
    const Time began = std::max(sent, done_);
    done_ = now;
    if (shape.Tokens() == 0) return std::nullopt;
    return TimedStep{shape, now - began};
  }

 private:
  struct Sent {
    scheduler::StepShape shape;
    Time at;
  };
  std::map<StepId, Sent> in_flight_;
  std::map<SlotId, std::uint32_t> lengths_;  // positions before the next decode
  Time done_{};
};

class Reader {
 public:
  explicit Reader(const scheduler::Config& config) : core_(config) { run_.config = config; }

  void Apply(const scheduler::Input& input) {
    now_ = input.now;
    std::visit([this](const auto& what) { Take(what); }, input.what);
    out_.Clear();
    core_.Apply(input, out_);
    for (const scheduler::Event& event : out_.events) {
      const auto it = courses_.find(event.request);
      if (it == courses_.end()) continue;
      std::visit([&](const auto& what) { On(it->second, what); }, event.what);
    }
    for (const Decision& decision : out_.decisions) Note(decision);
    for (std::size_t i = 0; i < out_.plans.size(); ++i) {
      groups_[out_.plans[i].group].Planned(out_.plans[i].plan, now_);
      ++run_.result.step_count;
      run_.result.most_decode_rows =
          std::max(run_.result.most_decode_rows, out_.steps[i].decode_rows);
    }
  }

  absl::StatusOr<RecordedRun> Finish() {
    if (run_.groups == 0) return absl::InvalidArgumentError("no group was up in the log");
    PENSTOCK_ASSIGN_OR_RETURN(run_.step_time, FitStepTimes(run_.warm_up, steps_));
    for (auto& [id, course] : courses_) Add(std::move(course));
    if (run_.requests.empty()) {
      return absl::InvalidArgumentError("no request of the log got a token");
    }
    run_.result.end = now_ - *first_;
    return std::move(run_);
  }

 private:
  // Ids grow in order of arrival.
  void Add(Course course) {
    if (!course.record.first_token) {
      ++run_.left_out;
      return;
    }
    if (!first_) first_ = course.arrived;
    const Duration base = *first_ - Time{};
    RequestRecord record = course.record;
    record.arrival = course.arrived - *first_;
    *record.first_token -= base;
    // A request that was cancelled, or that was running when the log ended, ends with its last
    // token.
    record.end = record.end.value_or(course.last_token - Time{}) - base;
    run_.trace.requests.push_back(
        {record.arrival, record.prompt_tokens, std::max(1U, record.output_tokens), {}});
    run_.result.requests.push_back(record);
    run_.requests.push_back({std::move(course.arrival), std::move(course.waited)});
  }

  void Take(const scheduler::Arrival& arrival) {
    Course& course = courses_[arrival.request];
    course.arrival = arrival;
    course.arrived = now_;
    course.record.prompt_tokens = static_cast<std::uint32_t>(arrival.prompt.size());
  }
  void Take(const scheduler::GroupUp& up) {
    seen_.insert(up.group);
    run_.groups = static_cast<std::uint32_t>(seen_.size());
    if (!run_.warm_up.samples.empty()) return;
    run_.capacity = up.capacity;
    run_.warm_up = up.calibration;
  }
  void Take(const scheduler::GroupLost& lost) {
    ++run_.losses;
    groups_.erase(lost.group);
  }
  void Take(const scheduler::StepDone& done) {
    if (const auto step = groups_[done.group].Done(done.result, now_)) steps_.push_back(*step);
  }
  template <class Other>
  void Take(const Other&) {}

  void On(Course& course, const scheduler::Started& started) {
    if (!course.record.first_token) course.record.cached_tokens = started.cached_tokens;
  }
  void On(Course& course, const scheduler::Tokens& tokens) {
    if (course.record.first_token) {
      const Duration gap = now_ - course.last_token;
      course.record.worst_gap = std::max(course.record.worst_gap, gap);
      run_.result.gaps_ms.push_back(Milliseconds(gap));
    } else {
      course.record.first_token = now_ - Time{};
    }
    course.last_token = now_;
    course.record.output_tokens =
        tokens.first_index + static_cast<std::uint32_t>(tokens.tokens.size());
  }
  void On(Course& course, const scheduler::Finished& finished) {
    course.record.output_tokens = finished.generated_tokens;
    course.record.end = now_ - Time{};
  }
  template <class Other>
  void On(Course&, const Other&) {}

  void Note(const Decision& decision) {
    const auto it = courses_.find(decision.request);
    if (it == courses_.end()) return;
    Course& course = it->second;
    if (course.waits) course.waited[course.waits->first] += now_ - course.waits->second;
    course.waits.reset();
    switch (decision.kind) {
      case DecisionKind::kPreempted:
        ++course.record.preemptions;
        [[fallthrough]];
      case DecisionKind::kQueued:
      case DecisionKind::kDeferred:
      case DecisionKind::kLost:
        course.waits = {decision.short_of, now_};
        break;
      default:
        break;
    }
  }

  scheduler::Scheduler core_;
  scheduler::Outputs out_;
  RecordedRun run_;
  Time now_;
  std::optional<Time> first_;  // arrival
  std::map<RequestId, Course> courses_;
  std::map<GroupId, GroupSteps> groups_;
  std::set<GroupId> seen_;
  std::vector<TimedStep> steps_;
};

}  // namespace

absl::StatusOr<RecordedRun> ReadRecordedRun(std::string_view log) {
  scheduler::InputLogReader reader(log);
  const auto config = reader.ReadHeader();
  if (!config) return absl::InvalidArgumentError(reader.error());
  if (const auto why = WhyInvalid(*config)) {
    return absl::InvalidArgumentError("the log's settings cannot be run: " + *why);
  }
  const ThrowBrokenInvariants guard;
  Reader run(*config);
  try {
    for (auto input = reader.Next(); input; input = reader.Next()) run.Apply(*input);
  } catch (const BrokenInvariant& broken) {
    return absl::InternalError(std::string("core: ") + broken.what());
  }
  if (!reader.error().empty()) return absl::InvalidArgumentError(reader.error());
  return run.Finish();
}

}  // namespace penstock::sim
