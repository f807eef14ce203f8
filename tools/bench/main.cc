#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/options/table.h"
#include "common/status.h"
#include "tools/bench/awscurl/load.h"
#include "tools/bench/effective/command.h"
#include "tools/bench/load_options.h"
#include "tools/bench/runner.h"

namespace {

void PrintError(std::string_view started_as, std::string_view error) {
  const std::string_view name = penstock::options::ShownName(started_as, "penstock-bench");
  std::fprintf(stderr, "%.*s: error: %.*s\n", static_cast<int>(name.size()), name.data(),
               static_cast<int>(error.size()), error.data());
}

}  // namespace

int main(int argc, char** argv) {
  namespace bench = penstock::bench;
  if (argc > 1 && std::string_view(argv[1]) == "effective") {
    return bench::effective::RunCommand(argc - 1, argv + 1);
  }
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (const std::optional<std::string> preset = bench::TakePreset(arguments)) {
    if (*preset == "awscurl") return bench::awscurl::Main(arguments);
    PrintError(argv[0], "--preset " + *preset +
                            ": must be awscurl; the presets recorded, readme and head are options "
                            "of `penstock-bench effective`");
    return 2;
  }
  const bench::CommandLine line = bench::ReadCommandLine(argc, argv);
  if (!line.config.ok()) {
    if (!absl::IsCancelled(line.config.status())) {
      PrintError(argv[0], penstock::Message(line.config.status()));
    }
    return line.exit_code;
  }
  const bench::LoadOptions& config = *line.config;
  const auto report = bench::Run(config);
  if (!report.ok()) {
    PrintError(argv[0], penstock::Message(report.status()));
    return 1;
  }
  const std::string json = bench::ToJson(config, *report) + "\n";
  const bool table = !config.output.empty() || ::isatty(STDOUT_FILENO) != 0;
  std::fputs((table ? bench::ToTable(*report) : json).c_str(), stdout);
  if (!config.output.empty()) std::ofstream(config.output) << json;
  return report->failures == 0 ? 0 : 1;
}
