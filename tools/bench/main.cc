#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "common/status.h"
#include "tools/bench/awscurl/load.h"
#include "tools/bench/effective/command.h"
#include "tools/bench/load_options.h"
#include "tools/bench/runner.h"

int main(int argc, char** argv) {
  namespace bench = penstock::bench;
  if (argc > 1 && std::string_view(argv[1]) == "effective") {
    return bench::effective::RunCommand(argc - 1, argv + 1);
  }
  const std::span<char*> arguments(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0));
  if (arguments.size() > 1 && std::string_view(arguments[0]) == "--preset" &&
      std::string_view(arguments[1]) == "awscurl") {
    return bench::awscurl::Main({arguments.begin() + 2, arguments.end()});
  }
  const bench::CommandLine line = bench::ReadCommandLine(argc, argv);
  if (!line.config.ok()) {
    if (!absl::IsCancelled(line.config.status())) {
      std::fprintf(stderr, "penstock-bench: %s\n", penstock::Message(line.config.status()).c_str());
    }
    return line.exit_code;
  }
  const bench::LoadOptions& config = *line.config;
  const auto report = bench::Run(config);
  if (!report.ok()) {
    std::fprintf(stderr, "penstock-bench: %s\n", penstock::Message(report.status()).c_str());
    return 1;
  }
  const std::string json = bench::ToJson(config, *report);
  if (config.output.empty()) {
    std::printf("%s\n", json.c_str());
  } else {
    std::ofstream(config.output) << json << "\n";
  }
  return report->failures == 0 ? 0 : 1;
}
