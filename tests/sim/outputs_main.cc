// Writes what the core decides as bytes, to be compared with those of another compiler and another
// standard library (tests/integration/test_record.py). It links the core and the simulator alone:
// Debian's Abseil and Boost need the standard library that they were built with.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "scheduler/log/output_digest.h"
#include "sim/replay.h"
#include "sim/run.h"
#include "sim/scenario.h"
#include "tests/bench/usage.h"

namespace {

using namespace penstock;

void Write(const std::string& bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

// All outputs of a recorded log.
int WriteOutputs(const char* path) {
  std::ostringstream log;
  log << std::ifstream(path, std::ios::binary).rdbuf();
  sim::ReplayHooks hooks;
  hooks.on_outputs = [](const scheduler::Outputs& out) { Write(scheduler::EncodeOutputs(out)); };
  const sim::ReplayReport report = sim::Replay(log.view(), hooks);
  if (report.good() && report.inputs > 0) return 0;
  std::fprintf(stderr, "%s: %s\n", path, report.error.empty() ? "differs" : report.error.c_str());
  return 1;
}

// The input logs of simulated seeds, which have the digests of all outputs.
int WriteLogs(std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Write(sim::RunScenario(sim::DrawScenario(seed), true).log);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage =
      "usage: penstock_sim_outputs LOG          all outputs of an input log, as bytes\n"
      "       penstock_sim_outputs FIRST COUNT  the input logs of simulated seeds\n";
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  if (argc == 2) return WriteOutputs(argv[1]);
  if (argc == 3) {
    return WriteLogs(bench::NumberArgument<std::uint64_t>("FIRST", argv[1]),
                     bench::NumberArgument<std::uint64_t>("COUNT", argv[2]));
  }
  std::fputs(kUsage, stderr);
  return 2;
}
