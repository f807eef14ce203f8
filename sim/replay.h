// Re-runs a recorded input log through a fresh core: compares the outputs with the digests in the
// log (G9), and lets the checker watch (G1 - G8), whether the log comes from a live router or from
// a simulation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::sim {

struct ReplayReport {
  std::string error;  // the log could not be read to its end; what is below holds up to there
  std::uint64_t inputs = 0;
  std::uint64_t compared = 0;  // inputs whose digest the log has
  std::uint64_t plans = 0;
  std::uint64_t tokens = 0;
  std::uint64_t cancels = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t calibration_samples = 0;
  std::optional<std::uint64_t> differs_at;  // number of the first input with other outputs, from 1
  std::vector<std::string> findings;        // of the checker, at its first unhappy input
  std::uint64_t unhappy_at = 0;             // that input's number

  bool good() const { return error.empty() && !differs_at && findings.empty(); }
};

struct ReplayHooks {
  std::function<void(const scheduler::Config&)> on_config;
  // `number` counts from 1.
  std::function<void(std::uint64_t number, const scheduler::Input&)> on_input;
  std::function<void(const scheduler::Outputs&)> on_outputs;
};

// Goes on after a difference and after a finding (the checker, however, stops there).
ReplayReport Replay(std::string_view log, const ReplayHooks& hooks = {});

}  // namespace penstock::sim
