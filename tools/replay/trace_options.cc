#include "tools/replay/trace_options.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/bad_option.h"
#include "common/exit_codes.h"
#include "common/options/values.h"
#include "common/status.h"
#include "scheduler/cost/machine_model.h"
#include "sim/fleet/forecasts.h"
#include "sim/trace/shape_trace.h"
#include "tools/replay/input_file.h"
#include "tools/replay/policies.h"
#include "tools/replay/trace_rows.h"
#include "tools/replay/workload.h"

namespace penstock::replay {
namespace {

using options::Values;

constexpr int kUniformRows = 1000;

std::uint32_t CountOf(const Values& values, std::string_view name) {
  return static_cast<std::uint32_t>(values.GetInt(name));
}

void Shape(const Values& values, sim::Trace& trace) {
  if (values.HasValue("whole-blocks"))
    sim::CountWholeBlocks(trace, CountOf(values, "whole-blocks"));
  if (const auto most = values.FindInt("max-output")) {
    for (sim::TraceRequest& request : trace.requests) {
      request.output_tokens = std::min(request.output_tokens, static_cast<std::uint32_t>(*most));
    }
  }
  const bool stamped = !values.HasValue("requests") && !trace.requests.front().blocks.empty();
  if (stamped) sim::SpreadStamps(trace, values.GetDuration("spread-stamps"));
  sim::ScaleTime(trace, values.GetDouble("time-scale"));
}

scheduler::Batching BatchingOf(const std::string& name) {
  if (name == "none") return scheduler::Batching::kNone;
  return name == "static" ? scheduler::Batching::kStatic : scheduler::Batching::kContinuous;
}

scheduler::Config ReadConfig(const Values& values) {
  scheduler::Config config;
  SetPolicies(values, config);
  config.pipeline_depth = CountOf(values, "pipeline-depth");
  config.batching = BatchingOf(values.GetString("batching"));
  if (values.GetString("static-grouping") == "equal") {
    config.static_grouping = scheduler::StaticGrouping::kEqual;
  }
  return config;
}

absl::StatusOr<sim::FleetOptions> ReadFleet(const Values& values) {
  sim::FleetOptions fleet;
  fleet.config = ReadConfig(values);
  fleet.capacity.blocks = CountOf(values, "blocks");
  fleet.capacity.block_size = CountOf(values, "block-size");
  fleet.capacity.slots = CountOf(values, "slots");
  fleet.capacity.max_sequence_length = CountOf(values, "max-sequence-length");
  fleet.capacity.max_step_tokens = fleet.config.max_step_tokens;
  fleet.groups = CountOf(values, "num-replicas");
  fleet.padded_batches = values.GetBool("padded");
  if (values.HasValue("declared-output"))
    fleet.declared_output = CountOf(values, "declared-output");
  fleet.keep_steps = values.HasValue("svg");
  const std::string& machine = values.GetString("machine");
  const auto model = scheduler::MachineModel::Find(machine);
  if (!model) {
    std::string names;
    for (const std::string& name : scheduler::MachineModel::Names()) names += " " + name;
    return BadOption("machine", machine, "one of" + names);
  }
  fleet.step_time = [model = *model](const scheduler::StepShape& s) { return model.StepTime(s); };
  return fleet;
}

absl::StatusOr<TraceOptions> ToOptions(const std::string& source, const Values& values) {
  TraceOptions options;
  PENSTOCK_ASSIGN_OR_RETURN(options.fleet, ReadFleet(values));
  PENSTOCK_ASSIGN_OR_RETURN(options.trace, ReadWorkload(source, kUniformRows, values));
  Shape(values, options.trace);
  if (values.GetBool("forecast")) {
    const bool ranks = values.GetString("forecast-error") == "rank";
    options.fleet.forecasts = sim::Forecasts(
        options.trace, ranks ? sim::ForecastError::kRank : sim::ForecastError::kLength,
        values.GetDouble("forecast-noise"), static_cast<std::uint64_t>(values.GetInt("seed")) + 2);
    options.forecast_tau = sim::TauOf(options.trace, options.fleet.forecasts);
  }
  options.batching = values.GetString("batching");
  if (values.HasValue("compare")) {
    options.compared_batching = values.GetString("compare");
    options.compared_fleet = options.fleet;
    options.compared_fleet->config.batching = BatchingOf(options.compared_batching);
    // Rows are padded only where a batch has a fixed set of them.
    for (sim::FleetOptions* fleet : {&options.fleet, &*options.compared_fleet}) {
      fleet->padded_batches &= fleet->config.batching != scheduler::Batching::kContinuous;
    }
  }
  options.objective = ReadObjective(values);
  options.seed = static_cast<std::uint64_t>(values.GetInt("seed"));
  options.rate = values.GetDouble("rate");
  options.json = values.GetString("json");
  options.csv = values.GetString("csv");
  options.svg = values.GetString("svg");
  options.attainment = values.GetDouble("attainment");
  options.min_rate = values.GetDouble("min-rate");
  options.max_rate = values.GetDouble("max-rate");
  options.precision = values.GetDouble("precision");
  return options;
}

}  // namespace

TraceCommandLine ReadTraceCommandLine(std::string_view program, int argc, const char* const* argv) {
  std::vector<const char*> rest(argv, argv + argc);
  const std::string source = TakeSource(rest);
  const auto table = options::ProgramWith(
      program, "FILE|uniform: a request trace on simulated groups under a virtual clock.",
      TraceRows());
  const options::CommandLine line =
      options::ReadCommandLine(table, static_cast<int>(rest.size()), rest.data());
  if (line.exit_code.has_value()) return {absl::CancelledError(), *line.exit_code};
  if (source.empty()) {
    return {absl::InvalidArgumentError("give a trace file, or the word uniform, after the command"),
            kExitUsage};
  }
  return {ToOptions(source, line.values), kExitUsage};
}

sim::Trace AtRate(const TraceOptions& options, double rate) {
  sim::Trace trace = options.trace;
  if (rate > 0) sim::ArriveAtRate(trace, rate, options.seed + 1);
  return trace;
}

}  // namespace penstock::replay
