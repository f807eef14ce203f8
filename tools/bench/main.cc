#include <cstdio>
#include <fstream>
#include <string>

#include "common/status.h"
#include "tools/bench/config.h"
#include "tools/bench/runner.h"

int main(int argc, char** argv) {
  namespace bench = penstock::bench;
  const auto config = bench::ParseCommandLine(argc, argv);
  if (!config.ok()) {
    std::fprintf(stderr, "penstock-bench: %s\n", penstock::Message(config.status()).c_str());
    return 2;
  }
  const auto report = bench::Run(*config);
  if (!report.ok()) {
    std::fprintf(stderr, "penstock-bench: %s\n", penstock::Message(report.status()).c_str());
    return 1;
  }
  const std::string json = bench::ToJson(*config, *report);
  if (config->output.empty()) {
    std::printf("%s\n", json.c_str());
  } else {
    std::ofstream(config->output) << json << "\n";
  }
  return report->failures == 0 ? 0 : 1;
}
