#include "tools/bench/effective/comparison.h"

#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/options/table.h"
#include "common/status.h"
#include "tools/bench/effective/option_rows.h"
#include "tools/bench/effective/server_process.h"

namespace penstock::bench::effective {
namespace {

// Requests of the calibration. With this many, its start and end hardly affect the result.
constexpr std::size_t kCalibration = 16;

struct Mode {
  std::string name;
  std::unique_ptr<ServerProcess> server;  // null when attached
  std::unique_ptr<Client> client;
  std::string record;
  std::vector<std::string> stats = {};  // the server's /stats after each repeat
};

std::string In(const std::string& folder, const std::string& file) {
  return (std::filesystem::path(folder) / file).string();
}

std::vector<std::string> LauncherCommand(const Options& options, const Mode& mode) {
  const bool window = mode.name == "static-window";
  std::vector<std::string> command = {
      options.launcher,
      "--batching",
      window ? "static" : mode.name,
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      "--record",
      mode.record,
      "--log-format",
      "json",
      "--max-concurrent-requests",
      std::to_string(std::max(options.shape.samples, std::uint32_t{128}))};
  if (mode.name.starts_with("static")) {
    command.insert(command.end(), {"--static-grouping", window ? "window" : "equal"});
  }
  command.insert(command.end(), options.launcher_options->begin(), options.launcher_options->end());
  return command;
}

std::string Joined(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& part : command) text += (text.empty() ? "" : " ") + part;
  return text;
}

// Takes variables that only this program reads out of the environment, since the launcher refuses
// unknown ones.
void DropOwnVariables() {
  for (const options::OptionSpec& own : OptionRows()) {
    const std::string name = options::EnvironmentName(own);
    const auto same = [&](const auto& spec) { return options::EnvironmentName(spec) == name; };
    if (std::ranges::none_of(options::Table(), same)) ::unsetenv(name.c_str());
  }
}

absl::StatusOr<std::vector<Mode>> StartServers(const Options& options, Report& report) {
  DropOwnVariables();
  std::vector<Mode> modes;
  for (const std::string& name : options.modes) {
    Mode mode{name, nullptr, nullptr, In(options.output, name + ".inputs")};
    const std::vector<std::string> command = LauncherCommand(options, mode);
    report.commands.push_back(Joined(command));
    std::fprintf(stderr, "starting %s\n", report.commands.back().c_str());
    PENSTOCK_ASSIGN_OR_RETURN(
        mode.server, ServerProcess::Start(command, In(options.output, name + ".server.log")));
    Address address = options.address;
    address.host = mode.server->host();
    address.port = mode.server->port();
    mode.client = std::make_unique<Client>(std::move(address));
    modes.push_back(std::move(mode));
  }
  return modes;
}

std::vector<Mode> Attach(const Options& options) {
  std::vector<Mode> modes;
  for (const Attached& attached : options.attached) {
    modes.push_back(
        {attached.mode, nullptr, std::make_unique<Client>(attached.address), attached.record});
  }
  return modes;
}

std::string_view BatchingOf(std::string_view mode) {
  if (mode == "nobatch") return "none";
  return mode == "dynamic" ? "continuous" : "static";
}

// A server says in /stats how it batches. The original's server does not.
absl::Status CheckBatching(const Mode& mode) {
  PENSTOCK_ASSIGN_OR_RETURN(const Answer stats, mode.client->Fetch("GET", "/stats"));
  if (stats.status != 200) {
    return absl::UnavailableError(mode.name + ": GET /stats answers " +
                                  std::to_string(stats.status));
  }
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(stats.body, error);
  const boost::json::object* const object = error ? nullptr : value.if_object();
  const boost::json::value* const batching =
      object == nullptr ? nullptr : object->if_contains("batching");
  if (batching == nullptr || !batching->is_string()) return absl::OkStatus();
  const std::string own(batching->get_string());
  if (own == BatchingOf(mode.name)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: this server has --batching %s; it must have --batching %s", mode.name,
                      own, BatchingOf(mode.name)));
}

// Requests per second of a server that is never idle, for traces of this shape.
absl::StatusOr<double> ServiceRate(Client& client, const TraceShape& shape,
                                   const std::vector<std::vector<TraceRequest>>& traces) {
  std::vector<TraceRequest> at_once = traces.front();
  at_once.resize(std::min(at_once.size(), kCalibration));
  for (TraceRequest& request : at_once) request.arrival = 0;
  std::vector<TraceRequest> warm_up = {at_once.front()};
  PENSTOCK_RETURN_IF_ERROR(client.Replay(warm_up).status());
  PENSTOCK_ASSIGN_OR_RETURN(const TraceRun run, client.Replay(at_once));
  double served = 0;
  for (const Outcome& outcome : run.outcomes) {
    if (!outcome.error.empty()) return absl::UnavailableError("calibration: " + outcome.error);
    served += outcome.num_tokens;
  }
  double asked = 0;
  for (const auto& trace : traces) {
    for (const TraceRequest& request : trace) asked += request.num_tokens;
  }
  const double mean = asked / (static_cast<double>(traces.size()) * shape.samples);
  return served / run.seconds / mean;
}

std::vector<std::vector<TraceRequest>> MakeTraces(TraceShape shape, std::uint32_t repeats) {
  std::vector<std::vector<TraceRequest>> traces;
  for (std::uint32_t r = 0; r < repeats; ++r) {
    traces.push_back(MakeTrace(shape));
    ++shape.seed;
  }
  return traces;
}

absl::Status Calibrate(const Options& options, std::vector<Mode>& modes, Report& report) {
  if (report.shape.rate > 0) return absl::OkStatus();
  const auto nobatch = std::ranges::find(modes, "nobatch", &Mode::name);
  if (nobatch == modes.end()) return absl::OkStatus();
  const auto traces = MakeTraces(report.shape, options.repeats);
  PENSTOCK_ASSIGN_OR_RETURN(report.nobatch_rate,
                            ServiceRate(*nobatch->client, report.shape, traces));
  report.shape.rate = options.load * report.nobatch_rate;
  std::fprintf(stderr, "nobatch serves %.3f requests/s, so %.3f arrive\n", report.nobatch_rate,
               report.shape.rate);
  return absl::OkStatus();
}

absl::Status RunAll(std::vector<Mode>& modes, Report& report) {
  for (const Mode& mode : modes) report.runs.push_back({mode.name, {}});
  const auto traces = MakeTraces(report.shape, report.repeats);
  for (std::size_t r = 0; r < traces.size(); ++r) {
    for (std::size_t m = 0; m < modes.size(); ++m) {
      // The server's rates count from its first arrival to its last answer, so the time in which
      // other modes run must not lie between them.
      PENSTOCK_RETURN_IF_ERROR(modes[m].client->Fetch("DELETE", "/stats").status());
      PENSTOCK_ASSIGN_OR_RETURN(TraceRun run, modes[m].client->Replay(traces[r]));
      PENSTOCK_ASSIGN_OR_RETURN(Answer stats, modes[m].client->Fetch("GET", "/stats"));
      modes[m].stats.push_back(std::move(stats.body));
      std::fprintf(stderr, "repeat %zu of %zu, %s: %.2f s\n", r + 1, traces.size(),
                   modes[m].name.c_str(), run.seconds);
      report.runs[m].runs.push_back(std::move(run));
    }
  }
  return absl::OkStatus();
}

// The server's own statistics: a list with an object for each repeat.
absl::Status SaveStats(const std::string& folder, const std::vector<Mode>& modes) {
  for (const Mode& mode : modes) {
    const std::string path = In(folder, mode.name + ".stats.json");
    std::ofstream file(path);
    file << "[" << absl::StrJoin(mode.stats, ",\n ") << "]\n";
    if (!file.flush()) return absl::UnavailableError("cannot write `" + path + "`");
  }
  return absl::OkStatus();
}

absl::Status AddTimelines(const std::vector<Mode>& modes, Report& report) {
  for (std::size_t m = 0; m < modes.size(); ++m) {
    if (modes[m].record.empty()) continue;
    std::ifstream file(modes[m].record, std::ios::binary);
    std::ostringstream log;
    if (!file || !(log << file.rdbuf())) {
      return absl::UnavailableError(modes[m].record + ": " + std::strerror(errno));
    }
    std::vector<std::uint64_t> ids;
    for (const Outcome& outcome : report.runs[m].runs.front().outcomes) {
      ids.push_back(outcome.request);
    }
    auto timeline = ReadTimeline(log.view(), ids);
    if (!timeline.ok()) return WithContext(timeline.status(), modes[m].record);
    report.timelines.push_back({modes[m].name, *std::move(timeline)});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Report> RunComparison(const Options& options) {
  PENSTOCK_RETURN_IF_ERROR(MakeFolder(options.output));
  Report report;
  report.shape = options.shape;
  report.repeats = options.repeats;
  std::vector<Mode> modes;
  if (options.launcher_options) {
    PENSTOCK_ASSIGN_OR_RETURN(modes, StartServers(options, report));
  } else {
    modes = Attach(options);
  }
  for (const Mode& mode : modes) PENSTOCK_RETURN_IF_ERROR(CheckBatching(mode));
  PENSTOCK_RETURN_IF_ERROR(Calibrate(options, modes, report));
  PENSTOCK_RETURN_IF_ERROR(RunAll(modes, report));
  PENSTOCK_RETURN_IF_ERROR(SaveStats(options.output, modes));
  for (Mode& mode : modes) mode.server.reset();  // so that their input logs are complete
  PENSTOCK_RETURN_IF_ERROR(AddTimelines(modes, report));
  for (const ModeRuns& runs : report.runs) report.summaries.push_back(Summarise(runs));
  report.checks = Compare(report.runs, report.summaries);
  return report;
}

}  // namespace penstock::bench::effective
