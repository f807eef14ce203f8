#include "tools/plan/plan_options.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "common/bad_option.h"
#include "common/exit_codes.h"
#include "common/options/values.h"
#include "common/status.h"
#include "scheduler/order/order_policy.h"
#include "sim/fleet/recorded_run.h"
#include "sim/trace/shape_trace.h"
#include "tools/plan/plan_rows.h"
#include "tools/plan/step_table.h"
#include "tools/replay/input_file.h"
#include "tools/replay/workload.h"

namespace penstock::plan {
namespace {

using options::Values;
using scheduler::AdmissionMode;
using scheduler::Order;

constexpr std::size_t kMostRows = 4000;
constexpr int kUniformRows = 2000;
constexpr Duration kSpreadStamps = std::chrono::seconds(3);  // Mooncake's traces (traces of replay)

std::optional<Duration> FindDuration(const Values& values, std::string_view name) {
  if (!values.HasValue(name)) return std::nullopt;
  return values.GetDuration(name);
}

template <class T>
std::vector<T> ReadNumbers(const Values& values, std::string_view name) {
  std::vector<T> numbers;
  for (const std::string& text : values.GetList(name)) {
    T number{};
    if (absl::SimpleAtoi(text, &number)) numbers.push_back(number);  // the table checked it
  }
  return numbers;
}

// The members of `all` that the list names.
template <class T, class NameOf>
absl::StatusOr<std::vector<T>> ReadNames(const Values& values, std::string_view option,
                                         const std::vector<T>& all, NameOf name_of) {
  std::vector<T> chosen;
  std::vector<std::string> names;
  for (const T one : all) names.emplace_back(name_of(one));
  for (const std::string& text : values.GetList(option)) {
    const auto at = std::ranges::find(names, text);
    if (at == names.end()) return BadOption(option, text, "of " + absl::StrJoin(names, ", "));
    chosen.push_back(all[static_cast<std::size_t>(at - names.begin())]);
  }
  return chosen;
}

absl::StatusOr<sim::Trace> ReadRequests(const Values& values, std::uint64_t seed) {
  const std::string& source = values.GetString("trace");
  std::string text;
  if (source != "uniform") {
    PENSTOCK_ASSIGN_OR_RETURN(text, replay::ReadInputFile(source));
  }
  if (!IsInputLog(text)) return replay::ReadWorkload(source, kUniformRows, values);
  absl::StatusOr<sim::RecordedRun> run = sim::ReadRecordedRun(text);
  if (!run.ok()) return WithContext(run.status(), source);
  const auto rows = values.FindInt("requests");
  if (!rows) return std::move(run->trace);
  return sim::Resample(run->trace, static_cast<std::uint32_t>(*rows), seed);
}

// Cuts the trace, and finds its own rate.
absl::Status ReadLoad(const Values& values, PlanOptions& options) {
  Load& load = options.load;
  load.seed = static_cast<std::uint64_t>(values.GetInt("seed"));
  if (const auto declared = values.FindInt("declared-output")) {
    load.declared_output = static_cast<std::uint32_t>(*declared);
  }
  PENSTOCK_ASSIGN_OR_RETURN(load.trace, ReadRequests(values, load.seed));
  auto& rows = load.trace.requests;
  if (!values.HasValue("requests") && rows.size() > kMostRows) rows.resize(kMostRows);
  if (!rows.front().blocks.empty() && !values.HasValue("requests")) {
    sim::SpreadStamps(load.trace, kSpreadStamps);
  }
  const Duration span = rows.back().arrival - rows.front().arrival;
  if (span > Duration(0)) {
    options.own_rate =
        static_cast<double>(rows.size() - 1) / std::chrono::duration<double>(span).count();
  }
  const std::string& arrivals = values.GetString("arrivals");
  load.own_times = options.own_rate > 0 && arrivals != "poisson";
  if (arrivals == "trace" && !load.own_times) {
    return BadOption("arrivals", "trace",
                     "auto or poisson: the trace has no times, or --requests drew its rows");
  }
  return absl::OkStatus();
}

absl::Status ReadGoal(const Values& values, PlanOptions& options) {
  Goal& goal = options.goal;
  const std::string& aim = values.GetString("objective");
  goal.aim = aim == "cost" ? Aim::kCost : aim == "power" ? Aim::kPower : Aim::kThroughput;
  goal.slo.ttft = FindDuration(values, "slo-ttft");
  goal.slo.inter_token = FindDuration(values, "slo-inter-token");
  goal.slo.worst_gap = FindDuration(values, "slo-gap");
  if (!goal.slo.ttft && !goal.slo.inter_token && !goal.slo.worst_gap) {
    return absl::InvalidArgumentError(
        "give an objective for latency: --slo-ttft, --slo-inter-token or --slo-gap");
  }
  goal.share = values.GetDouble("percentile") / 100;
  const double rate = values.GetDouble("rate");
  if (goal.aim == Aim::kThroughput) {
    if (rate == 0) return absl::OkStatus();
    return BadOption("rate", values.TextOf("rate"),
                     "0 with --objective throughput, which looks for the highest rate");
  }
  if (rate > 0 || options.own_rate > 0) goal.demand = rate > 0 ? rate : options.own_rate;
  for (const MachineType& machine : options.machines) {
    const bool cost = goal.aim == Aim::kCost;
    if ((cost ? machine.price : machine.watts) > 0) continue;
    return absl::InvalidArgumentError(machine.where + ": " + machine.name + "." +
                                      (cost ? "price" : "watts") + " must be above 0 with " +
                                      "--objective " + aim);
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanOptions> ToOptions(const Values& values) {
  PlanOptions options;
  PENSTOCK_ASSIGN_OR_RETURN(options.model, ReadPlanModel(values.GetString("model")));
  PENSTOCK_ASSIGN_OR_RETURN(options.machines, ReadMachines(values.GetString("machines")));
  PENSTOCK_RETURN_IF_ERROR(ReadLoad(values, options));
  PENSTOCK_RETURN_IF_ERROR(ReadGoal(values, options));
  options.ranks = ReadNumbers<int>(values, "tensor-parallel");
  options.space.step_tokens = ReadNumbers<std::uint32_t>(values, "budgets");
  PENSTOCK_ASSIGN_OR_RETURN(
      options.space.orders,
      ReadNames(values, "orders",
                std::vector{Order::kFcfs, Order::kLongestPrefix, Order::kShortestPredicted},
                [](Order order) { return scheduler::OrderName(order); }));
  PENSTOCK_ASSIGN_OR_RETURN(
      options.space.admissions,
      ReadNames(values, "admissions",
                std::vector{AdmissionMode::kGuaranteed, AdmissionMode::kOptimistic,
                            AdmissionMode::kMixed},
                [](AdmissionMode mode) { return scheduler::AdmissionName(mode); }));
  options.slots = static_cast<std::uint32_t>(values.GetInt("max-batch-size"));
  options.threads = static_cast<unsigned>(values.GetInt("threads"));
  options.changes = values.GetBool("changes");
  options.json = values.GetString("json");
  options.write = values.GetString("write");
  return options;
}

}  // namespace

CommandLine ReadCommandLine(std::string_view program, int argc, const char* const* argv) {
  const auto table = options::ProgramWith(
      program, "Finds the groups and settings that serve a load within an objective.", PlanRows());
  const options::CommandLine line = options::ReadCommandLine(table, argc, argv);
  if (line.exit_code.has_value()) return {absl::CancelledError(), *line.exit_code};
  return {ToOptions(line.values), kExitUsage};
}

}  // namespace penstock::plan
