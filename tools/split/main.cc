#include <cstdio>
#include <fstream>

#include "common/status.h"
#include "tools/split/split_options.h"
#include "tools/split/split_report.h"

int main(int argc, char** argv) {
  using namespace penstock;
  const split::CommandLine line = split::ReadCommandLine(argc, argv);
  if (!line.options.ok()) {
    if (!absl::IsCancelled(line.options.status())) {
      std::fprintf(stderr, "penstock-split: error: %s\n", Message(line.options.status()).c_str());
    }
    return line.exit_code;
  }
  const split::SplitOptions& options = *line.options;
  if (!options.sweep) {
    const split::SplitReport report = split::Split(options);
    std::fputs((options.json ? ToJson(report) : ToText(options, report)).c_str(), stdout);
    return 0;
  }
  const auto sweep = split::Sweep(options);
  std::fputs((options.json ? ToJson(sweep) : ToTable(sweep)).c_str(), stdout);
  std::ofstream plot(options.svg);
  plot << split::ToSvg(options, sweep);
  if (plot.flush()) {
    std::fprintf(stderr, "plot written to %s\n", options.svg.c_str());
    return 0;
  }
  std::fprintf(stderr, "penstock-split: error: --svg %s: must be a writable file\n",
               options.svg.c_str());
  return 1;
}
