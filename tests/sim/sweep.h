// Many seeds on several threads. The lowest failing seed is shrunk and its input log is kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/run.h"

namespace penstock::sim {

struct SweepOptions {
  std::uint64_t first = 1;
  std::uint64_t count = 1000;
  std::uint32_t threads = 1;
  std::function<void()> before_each;  // for tests: runs before each seed
  std::string mutant;                 // switched on in every thread; empty = none
};

struct SweepResult {
  std::optional<std::uint64_t> failed;  // lowest failing seed
  RunReport failure;
  RunReport sum;  // of the counts of all seeds that ran
  std::uint64_t seeds = 0;
};

SweepResult Sweep(const SweepOptions& options);

}  // namespace penstock::sim
