// penstock-replay run LOG
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/exit_codes.h"
#include "common/options/spec.h"
#include "common/options/values.h"
#include "common/status.h"
#include "scheduler/log/output_digest.h"
#include "sim/describe.h"
#include "sim/replay.h"
#include "tools/replay/commands.h"
#include "tools/replay/input_file.h"
#include "tools/replay/report.h"

namespace penstock::replay {
namespace {

using options::OptionSpec;
using options::Type;

constexpr OptionSpec kRows[] = {
    OptionSpec("outputs", Type::kString, "",
               "File for all outputs as bytes, to be compared with those of another build."),
    OptionSpec("print", Type::kBool, "false", "Print every input and what it causes, in words."),
};

std::string Count(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// Prints one line, and one for each violation.
void Print(const sim::ReplayReport& report) {
  const std::string line = Count(report.inputs, "input") + ", " + Count(report.compared, "output") +
                           " compared, " + Count(report.plans, "plan") + ", " +
                           Count(report.tokens, "token") + ", " + Count(report.cancels, "cancel") +
                           ", " + Count(report.preemptions, "preemption") + ", " +
                           Count(report.calibration_samples, "calibration sample");
  std::printf("%s\n", line.c_str());
  if (report.differs_at) {
    std::printf("G9: input %s has other outputs than the log says\n",
                std::to_string(*report.differs_at).c_str());
  }
  for (const std::string& finding : report.findings) {
    std::printf("input %s: %s\n", std::to_string(report.findings_at).c_str(), finding.c_str());
  }
  if (report.good()) {
    std::printf("%s\n", report.compared == report.inputs
                            ? "the same outputs, byte for byte; all guarantees hold"
                            : "all guarantees hold; not every output was in the log");
  }
}

sim::ReplayHooks MakeHooks(bool print, std::ofstream& outputs) {
  sim::ReplayHooks hooks;
  if (print) {
    hooks.on_config = [](const scheduler::Config& config) {
      std::printf("%s\n", sim::Describe(config).c_str());
    };
    hooks.on_input = [](std::uint64_t number, const scheduler::Input& input) {
      std::printf("%s. %s\n", std::to_string(number).c_str(), sim::Describe(input).c_str());
    };
  }
  hooks.on_outputs = [print, &outputs](const scheduler::Outputs& out) {
    if (outputs.is_open()) outputs << scheduler::EncodeOutputs(out);
    if (!print) return;
    std::istringstream lines(sim::Describe(out));
    for (std::string line; std::getline(lines, line);) std::printf("    %s\n", line.c_str());
  };
  return hooks;
}

int RunLog(const std::string& path, const options::Values& values) {
  const std::string_view name = values.program().name;
  const absl::StatusOr<std::string> log = ReadInputFile(path);
  if (!log.ok()) return Complain(name, Message(log.status()), kExitUsage);
  std::ofstream outputs;
  const std::string outputs_path = values.GetString("outputs");
  if (!outputs_path.empty()) {
    outputs.open(outputs_path, std::ios::binary | std::ios::trunc);
    if (!outputs) return Complain(name, outputs_path + ": " + std::strerror(errno), kExitUsage);
  }
  const sim::ReplayReport report = sim::Replay(*log, MakeHooks(values.GetBool("print"), outputs));
  if (report.inputs > 0) Print(report);
  if (!report.error.empty()) {
    return Complain(name, path + ": " + report.error,
                    report.inputs == 0 ? kExitUsage : kExitFailure);
  }
  return report.good() ? kExitOk : kExitFailure;
}

}  // namespace

int RunCommand(int argc, const char* const* argv) {
  std::vector<const char*> rest(argv, argv + argc);
  const std::string path = TakeSource(rest);
  const auto table = options::ProgramWith(
      argv[0],
      "LOG: re-runs an input log (penstock-router --record) and compares the outputs with those "
      "recorded.",
      kRows);
  const options::CommandLine line =
      options::ReadCommandLine(table, static_cast<int>(rest.size()), rest.data());
  if (line.exit_code.has_value()) return *line.exit_code;
  if (path.empty()) return Complain(argv[0], "give the input log after the command", kExitUsage);
  return RunLog(path, line.values);
}

}  // namespace penstock::replay
