#include <cstdio>

#include "common/bad_option.h"
#include "common/exit_codes.h"
#include "common/status.h"
#include "tools/replay/commands.h"
#include "tools/replay/report.h"
#include "tools/replay/trace_options.h"

namespace penstock::replay {
namespace {

int ComplainOf(const char* program, const absl::Status& status, int code) {
  return absl::IsCancelled(status) ? code : Complain(program, Message(status), code);
}

// A run at `rate` with its summary.
struct Run {
  sim::FleetResult result;
  sim::Summary summary;
};

absl::StatusOr<Run> RunAt(const TraceOptions& options, double rate,
                          const sim::FleetOptions& fleet) {
  Run run;
  PENSTOCK_ASSIGN_OR_RETURN(run.result, sim::RunFleet(AtRate(options, rate), fleet));
  run.summary = sim::Summarise(run.result, options.objective);
  run.summary.forecast_tau = options.forecast_tau;
  return run;
}

absl::Status Publish(const TraceOptions& options, const Run& run, std::optional<double> rate) {
  if (!run.result.first_error.empty()) {
    std::fprintf(stderr, "first failure: %s\n", run.result.first_error.c_str());
  }
  if (!options.csv.empty()) {
    PENSTOCK_RETURN_IF_ERROR(WriteText(options.csv, ToCsv(run.result)));
  }
  if (options.json != "-") {
    if (rate) std::printf("highest rate that meets the objective: %.3f requests/s\n", *rate);
    std::fputs(ToText(run.summary).c_str(), stdout);
  }
  if (options.json.empty()) return absl::OkStatus();
  return WriteText(options.json, ToJson(run.summary, rate));
}

absl::Status WritePicture(const TraceOptions& options, const std::vector<NamedRun>& runs) {
  if (options.svg.empty()) return absl::OkStatus();
  PENSTOCK_RETURN_IF_ERROR(WriteText(options.svg, ToSvg(runs)));
  if (options.svg != "-") std::fprintf(stderr, "picture written to %s\n", options.svg.c_str());
  return absl::OkStatus();
}

absl::Status Search(const TraceOptions& options) {
  if (options.min_rate > options.max_rate) {
    return BadOption("min-rate", std::to_string(options.min_rate),
                     "<= " + std::to_string(options.max_rate) + " (max-rate)");
  }
  absl::Status failure;
  const auto good = [&](double rate) {
    const auto run = RunAt(options, rate, options.fleet);
    if (!run.ok()) failure = run.status();
    return run.ok() && run->summary.attainment >= options.attainment;
  };
  const auto rate = sim::HighestGood(options.min_rate, options.max_rate, options.precision, good);
  PENSTOCK_RETURN_IF_ERROR(failure);
  // Not even the lowest rate meets the objective: report its results.
  PENSTOCK_ASSIGN_OR_RETURN(const Run run,
                            RunAt(options, rate.value_or(options.min_rate), options.fleet));
  PENSTOCK_RETURN_IF_ERROR(Publish(options, run, rate.value_or(0)));
  return WritePicture(options, {{options.batching, &run.result}});
}

absl::Status Trace(const TraceOptions& options) {
  PENSTOCK_ASSIGN_OR_RETURN(const Run run, RunAt(options, options.rate, options.fleet));
  if (!options.compared_fleet) {
    PENSTOCK_RETURN_IF_ERROR(Publish(options, run, std::nullopt));
    return WritePicture(options, {{options.batching, &run.result}});
  }
  PENSTOCK_ASSIGN_OR_RETURN(const Run other, RunAt(options, options.rate, *options.compared_fleet));
  std::printf("batching %s\n", options.batching.c_str());
  PENSTOCK_RETURN_IF_ERROR(Publish(options, run, std::nullopt));
  std::printf("\nbatching %s\n%s", options.compared_batching.c_str(),
              ToText(other.summary).c_str());
  return WritePicture(
      options, {{options.batching, &run.result}, {options.compared_batching, &other.result}});
}

}  // namespace

int TraceCommand(int argc, const char* const* argv) {
  const TraceCommandLine line = ReadTraceCommandLine(argv[0], argc, argv);
  if (!line.options.ok()) return ComplainOf(argv[0], line.options.status(), line.exit_code);
  const absl::Status status = Trace(*line.options);
  return status.ok() ? kExitOk : ComplainOf(argv[0], status, ExitCodeOf(status));
}

int SearchCommand(int argc, const char* const* argv) {
  const TraceCommandLine line = ReadTraceCommandLine(argv[0], argc, argv);
  if (!line.options.ok()) return ComplainOf(argv[0], line.options.status(), line.exit_code);
  const absl::Status status = Search(*line.options);
  return status.ok() ? kExitOk : ComplainOf(argv[0], status, ExitCodeOf(status));
}

}  // namespace penstock::replay
