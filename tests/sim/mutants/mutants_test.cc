// Every planted bug must be found within kSeeds seeds. Prints a table: bug, guarantee, seeds until
// found, inputs of the shrunk run, first finding. PENSTOCK_MUTANT=name runs one bug alone;
// PENSTOCK_FIRST=seed begins at another seed than 1.
#include "tests/sim/mutants/mutants.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "sim/shrink.h"
#include "tests/sim/mutants/switch.h"
#include "tests/sim/sweep.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kSeeds = 1000;
constexpr unsigned kSecondsPerBug = 100;

std::string Padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ') + " ";
}

// Text for the table's row, after the columns that are known already.
std::string Hunt(const std::string& name, const std::function<void(const std::string&)>& found) {
  SweepOptions options;
  options.count = kSeeds;
  if (const char* first = std::getenv("PENSTOCK_FIRST")) options.first = std::stoull(first);
  options.mutant = name;
  const SweepResult result = Sweep(options);
  if (!scheduler::MutantReached(name)) return "never reached";
  if (!result.failed) return "survives";
  found(Padded(std::to_string(*result.failed), 6));
  SwitchMutant(name);
  const Shrunk shrunk = Shrink(DrawScenario(*result.failed));
  SwitchMutant("");
  return Padded(std::to_string(shrunk.report.inputs), 6) +
         result.failure.findings.front().substr(0, 60);
}

// A bug may crash the core or make it loop, so each is hunted in a process of its own.
void HuntInChild(const Mutant& mutant) {
  const std::string name(mutant.name);
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe(pipe_ends.data()), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(kSecondsPerBug);
    const auto tell = [&pipe_ends](const std::string& text) {
      if (write(pipe_ends[1], text.data(), text.size()) < 0) _exit(1);
    };
    tell(Hunt(name, tell));
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string row;
  std::array<char, 256> bytes{};
  for (ssize_t n = 1; (n = read(pipe_ends[0], bytes.data(), bytes.size())) > 0;) {
    row.append(bytes.data(), static_cast<std::size_t>(n));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) row += "dies of signal " + std::to_string(WTERMSIG(status));
  std::printf("%s%s %s\n", Padded(name, 33).c_str(), std::string(mutant.breaks).c_str(),
              row.c_str());
  EXPECT_EQ(row.find("survives"), row.npos) << name << ": " << kSeeds << " seeds";
  EXPECT_EQ(row.find("never reached"), row.npos) << name;
}

// Two cases, so that ctest runs them side by side.
void HuntEvery(std::size_t first) {
  const char* only = std::getenv("PENSTOCK_MUTANT");
  std::printf("%sby %s%sfound as\n", Padded("planted bug", 33).c_str(), Padded("seeds", 6).c_str(),
              Padded("short", 6).c_str());
  for (std::size_t i = first; i < AllMutants().size(); i += 2) {
    const Mutant& mutant = AllMutants()[i];
    if (only == nullptr || mutant.name == only) HuntInChild(mutant);
  }
}

TEST(Mutants, EverySecondPlantedBugIsFound) { HuntEvery(0); }
TEST(Mutants, TheOthersAreFoundToo) { HuntEvery(1); }

TEST(Mutants, WithoutOneTheInstrumentedCorePasses) {
  SweepOptions options;
  options.count = 200;
  EXPECT_FALSE(Sweep(options).failed);
}

}  // namespace
}  // namespace penstock::sim
