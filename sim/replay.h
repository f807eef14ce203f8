// Replays an input log, recorded by a router or by a simulation, through a new core. Compares the
// outputs with the digests in the log (G9) and checks the other guarantees (G1 to G8).
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
  std::string
      error;  // why the log could not be read to its end; the rest describes the part before that
  std::uint64_t inputs = 0;
  std::uint64_t compared = 0;  // inputs that have a digest in the log
  std::uint64_t plans = 0;
  std::uint64_t tokens = 0;
  std::uint64_t cancels = 0;
  std::uint64_t preemptions = 0;
  std::uint64_t calibration_samples = 0;
  std::optional<std::uint64_t> differs_at;  // the first input with other outputs, counted from 1
  std::vector<std::string> findings;  // of the checker, for the first input that broke a guarantee
  std::uint64_t findings_at = 0;      // that input, counted from 1

  bool good() const { return error.empty() && !differs_at && findings.empty(); }
};

struct ReplayHooks {
  std::function<void(const scheduler::Config&)> on_config;
  // `number` counts from 1.
  std::function<void(std::uint64_t number, const scheduler::Input&)> on_input;
  std::function<void(const scheduler::Outputs&)> on_outputs;
};

// A difference or a finding does not end the replay, but the checker stops at its first finding.
ReplayReport Replay(std::string_view log, const ReplayHooks& hooks = {});

}  // namespace penstock::sim
