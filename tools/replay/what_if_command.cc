// penstock-replay what-if LOG
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/exit_codes.h"
#include "common/options/values.h"
#include "common/status.h"
#include "sim/fleet/recorded_run.h"
#include "sim/fleet/summary.h"
#include "tools/replay/commands.h"
#include "tools/replay/input_file.h"
#include "tools/replay/policies.h"
#include "tools/replay/report.h"
#include "tools/replay/what_if.h"
#include "tools/replay/what_if_page.h"
#include "tools/replay/what_if_rows.h"

namespace penstock::replay {
namespace {

using options::Values;
using sim::RecordedRun;

void SetFleet(const Values& values, sim::FleetOptions& fleet) {
  SetPolicies(values, fleet.config);
  if (const auto groups = values.FindInt("num-replicas")) {
    fleet.groups = static_cast<std::uint32_t>(*groups);
  }
  if (const auto blocks = values.FindInt("blocks")) {
    fleet.capacity.blocks = static_cast<std::uint32_t>(*blocks);
  }
  // Shards have as many slots as the batch may have requests.
  fleet.capacity.slots = std::max(fleet.capacity.slots, fleet.config.max_batch_size);
  fleet.capacity.max_step_tokens =
      std::max(fleet.capacity.max_step_tokens, fleet.config.max_step_tokens);
}

// "--num-replicas 2 --rate-scale 1.5", or empty.
std::string Changes(const Values& values) {
  std::string text;
  for (const options::OptionSpec& spec : WhatIfRows()) {
    const std::string_view name = spec.name;
    if (name == "explain") break;  // what follows changes nothing
    if (!values.IsSet(name)) continue;
    if (!text.empty()) text += ' ';
    text += "--" + std::string(name) + " " + values.TextOf(name);
  }
  return text;
}

std::vector<std::string> Notes(const RecordedRun& run, const std::string& changes) {
  std::vector<std::string> notes = {
      "recorded: the run as it was. simulated: the same requests and settings on simulated groups; "
      "its distance from `recorded` is the error to expect of `what if`."};
  notes.push_back(changes.empty() ? "what if: no option was given, so it is left out."
                                  : "what if: simulated with " + changes + ".");
  if (run.left_out > 0) {
    notes.push_back(absl::StrCat(run.left_out, " requests without a token are left out."));
  }
  if (run.losses > 0) {
    notes.push_back(
        absl::StrCat("The loss of a group (", run.losses, " in the log) is not simulated."));
  }
  if (run.config.max_decode_rows > 1) notes.push_back("Drafts of speculation are not simulated.");
  return notes;
}

absl::StatusOr<Column> SimulatedColumn(const RecordedRun& run, const Workload& workload,
                                       const sim::FleetOptions& fleet, std::string name,
                                       const sim::Objective& objective) {
  PENSTOCK_ASSIGN_OR_RETURN(sim::FleetResult result, Simulate(run, workload, fleet));
  Column column{std::move(name), std::move(result), {}};
  column.summary = sim::Summarise(column.result, objective);
  return column;
}

absl::Status Compare(const RecordedRun& run, const Values& values) {
  const sim::Objective objective = ReadObjective(values);
  std::vector<Column> columns = {{"recorded", run.result, sim::Summarise(run.result, objective)}};
  const Workload recorded = Multiply(run, 1, 0);
  PENSTOCK_ASSIGN_OR_RETURN(
      Column same, SimulatedColumn(run, recorded, AsRecorded(run), "simulated", objective));
  columns.push_back(std::move(same));
  const std::string changes = Changes(values);
  if (!changes.empty()) {
    const Workload workload = Multiply(run, values.GetDouble("rate-scale"),
                                       static_cast<std::uint64_t>(values.GetInt("seed")));
    if (workload.request.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--rate-scale ", values.GetDouble("rate-scale"), " leaves no request of ",
                       run.requests.size()));
    }
    sim::FleetOptions fleet = AsRecorded(run);
    SetFleet(values, fleet);
    PENSTOCK_ASSIGN_OR_RETURN(Column other,
                              SimulatedColumn(run, workload, fleet, "what if", objective));
    columns.push_back(std::move(other));
  }
  const std::vector<std::string> notes = Notes(run, changes);
  const std::string json = values.GetString("json");
  if (json != "-") {
    std::fputs(ToText(columns).c_str(), stdout);
    std::puts("");
    for (const std::string& note : notes) std::puts(note.c_str());
  }
  if (!json.empty()) PENSTOCK_RETURN_IF_ERROR(WriteText(json, ToJson(columns)));
  if (!values.HasValue("page")) return absl::OkStatus();
  return WriteText(values.GetString("page"), ToPage(columns, notes));
}

std::string Waiting(const std::map<Budget, Duration>& waited) {
  std::vector<std::pair<Duration, std::string>> parts;
  for (const auto& [budget, time] : waited) {
    const std::string_view name = budget == Budget::kNone ? "not examined" : BudgetName(budget);
    if (time > Duration{0}) parts.emplace_back(time, name);
  }
  std::sort(parts.rbegin(), parts.rend());
  std::string text;
  for (const auto& [time, name] : parts) {
    absl::StrAppendFormat(&text, "%s%s %.1f ms", text.empty() ? "" : ", ", name,
                          Milliseconds(time));
  }
  return text.empty() ? "not at all" : text;
}

void Describe(const RecordedRun& run, std::size_t index) {
  const sim::RequestRecord& record = run.result.requests[index];
  const Duration first = *record.first_token - record.arrival;
  Duration queued{0};
  for (const auto& [budget, time] : run.requests[index].waited) queued += time;
  std::printf("request %s: prompt %u tokens (%u of them cached), output %u, preempted %u times\n",
              std::to_string(run.requests[index].arrival.request.value()).c_str(),
              record.prompt_tokens, record.cached_tokens, record.output_tokens, record.preemptions);
  std::printf("%-24s %10.1f ms  %s\n", "queue", Milliseconds(queued),
              Waiting(run.requests[index].waited).c_str());
  std::printf("%-24s %10.1f ms\n", "prompt", Milliseconds(std::max(first - queued, Duration{0})));
  std::printf("%-24s %10.1f ms  longest gap %.1f ms\n", "output",
              Milliseconds(*record.end - *record.first_token), Milliseconds(record.worst_gap));
  std::printf("%-24s %10.1f ms\n", "end to end", Milliseconds(*record.end - record.arrival));
}

absl::StatusOr<double> EndToEnd(const RecordedRun& run, const Workload& workload,
                                const sim::FleetOptions& fleet, std::size_t index) {
  PENSTOCK_ASSIGN_OR_RETURN(const sim::FleetResult result, Simulate(run, workload, fleet));
  const sim::RequestRecord& record = result.requests[index];
  return record.end ? Milliseconds(*record.end - record.arrival) : -1;
}

absl::Status Explain(const RecordedRun& run, std::int64_t number) {
  const auto found = std::find_if(
      run.requests.begin(), run.requests.end(), [&](const sim::RecordedRequest& request) {
        return request.arrival.request.value() == static_cast<std::uint64_t>(number);
      });
  if (found == run.requests.end()) {
    return absl::NotFoundError(
        absl::StrCat("--explain ", number, ": the log has no request of this number with a token"));
  }
  const auto index = static_cast<std::size_t>(found - run.requests.begin());
  Describe(run, index);
  const Workload workload = Multiply(run, 1, 0);
  PENSTOCK_ASSIGN_OR_RETURN(const double base, EndToEnd(run, workload, AsRecorded(run), index));
  std::printf("\nEnd to end, simulated with one change at a time, the most helpful first:\n");
  std::printf("%-32s %10.1f ms\n", "as recorded", base);
  std::vector<std::pair<double, std::string>> lines;
  for (const Change& change : UsualChanges(run)) {
    sim::FleetOptions fleet = AsRecorded(run);
    change.make(fleet);
    PENSTOCK_ASSIGN_OR_RETURN(const double time, EndToEnd(run, workload, fleet, index));
    if (time >= 0) lines.emplace_back(time, change.text);
  }
  std::sort(lines.begin(), lines.end());
  for (const auto& [time, text] : lines) {
    std::printf("%-32s %10.1f ms  %+.0f %%\n", text.c_str(), time,
                std::round(100 * (time / base - 1)) + 0.0);  // no "-0"
  }
  return absl::OkStatus();
}

}  // namespace

int WhatIfCommand(int argc, const char* const* argv) {
  std::vector<const char*> rest(argv, argv + argc);
  const std::string path = TakeSource(rest);
  const auto table = options::ProgramWith(
      argv[0],
      "LOG: the requests of an input log (penstock-router --record) on simulated groups, with the "
      "settings that the options change.",
      WhatIfRows());
  const options::CommandLine line =
      options::ReadCommandLine(table, static_cast<int>(rest.size()), rest.data());
  if (line.exit_code.has_value()) return *line.exit_code;
  if (path.empty()) return Complain(argv[0], "give the input log after the command", kExitUsage);
  const absl::StatusOr<std::string> log = ReadInputFile(path);
  if (!log.ok()) return Complain(argv[0], Message(log.status()), kExitUsage);
  const absl::StatusOr<RecordedRun> run = sim::ReadRecordedRun(*log);
  if (!run.ok()) return Complain(argv[0], path + ": " + Message(run.status()), kExitUsage);
  const auto request = line.values.FindInt("explain");
  const absl::Status status = request ? Explain(*run, *request) : Compare(*run, line.values);
  return status.ok() ? kExitOk : Complain(argv[0], Message(status), ExitCodeOf(status));
}

}  // namespace penstock::replay
