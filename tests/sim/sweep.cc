#include "tests/sim/sweep.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sim/scenario.h"
#include "tests/sim/mutants/mutants.h"

namespace penstock::sim {
namespace {

// The seed that this thread runs. An assertion of a library, or a signal, ends the process; the
// handler prints the seed before that.
thread_local std::uint64_t running_seed = 0;

void PrintSeed(int signal) {
  char text[] = "seed 00000000000000000000 dies of a signal\n";
  std::uint64_t rest = running_seed;
  for (int i = 24; i > 4; --i, rest /= 10) text[i] = static_cast<char>('0' + rest % 10);
  if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0) _exit(1);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

class Sweeper {
 public:
  explicit Sweeper(const SweepOptions& options)
      : options_(options), next_(options.first), end_(options.first + options.count) {}

  SweepResult Run() {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 1; i < options_.threads; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    return std::move(result_);
  }

 private:
  void Work() {
    SwitchMutant(options_.mutant);
    // Takes seeds in order and none above a failing one, so it finds the lowest failing seed.
    for (std::uint64_t seed = next_++; seed < end_; seed = next_++) Add(seed, One(seed));
    SwitchMutant("");
  }

  RunReport One(std::uint64_t seed) const {
    running_seed = seed;
    if (options_.before_each) options_.before_each();
    return RunScenario(DrawScenario(seed));
  }

  void Add(std::uint64_t seed, RunReport report) {
    const std::lock_guard lock(mutex_);
    ++result_.seeds;
    result_.sum.inputs += report.inputs;
    result_.sum.steps += report.steps;
    result_.sum.tokens += report.tokens;
    result_.sum.preemptions += report.preemptions;
    result_.sum.cached_tokens += report.cached_tokens;
    if (report.passed() || (result_.failed && *result_.failed < seed)) return;
    result_.failed = seed;
    result_.failure = std::move(report);
    end_ = std::min(end_.load(), seed);
  }

  const SweepOptions options_;
  std::atomic<std::uint64_t> next_;
  std::atomic<std::uint64_t> end_;
  std::mutex mutex_;
  SweepResult result_;
};

}  // namespace

SweepResult Sweep(const SweepOptions& options) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, PrintSeed);
  }
  return Sweeper(options).Run();
}

}  // namespace penstock::sim
