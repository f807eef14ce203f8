// How long a step will take on one group, from the group's warm-up table and from the steps that it
// has run since. The composer inverts it to keep a step under a time; the splitter takes from it
// what a launch costs.
//
// Integer throughout (nanoseconds), so every compiler predicts the same; see cost_terms.h for the
// fit. Threading: one owner.
#pragma once

#include <cstdint>
#include <optional>

#include "common/plan/group.h"
#include "common/time.h"
#include "scheduler/cost/cost_terms.h"
#include "scheduler/step/step_shape.h"

namespace penstock::scheduler {

constexpr std::uint64_t kDefaultLaunchCells = 256;

class CostModel {
 public:
  // Fitted; not ready when the table holds nothing to fit.
  explicit CostModel(const Calibration& calibration) : terms_(FitCost(calibration)) {}

  bool ready() const { return terms_.has_value(); }

  // 0 while not ready. Never less for a step that does more.
  Duration Predict(const StepShape& step) const;

  // A step that was predicted so took so long. Corrects all later predictions by a common factor,
  // which follows the machine (throttling, neighbours) within some thirty steps; a single outlier
  // moves it by 3 % at most.
  void Observe(Duration predicted, Duration actual);

  // The most prompt tokens, at most `most`, that a chunk after `cached` positions may add to `step`
  // so that it takes no longer than `target`. Must be ready.
  std::uint32_t LargestChunk(const StepShape& step, std::uint64_t cached, std::uint32_t most,
                             Duration target) const;

  // What one more attention launch costs, in attention cells; kDefaultLaunchCells while not ready.
  std::uint64_t LaunchCells() const;

 private:
  std::uint64_t Linear(std::uint64_t tokens) const;

  std::optional<CostTerms> terms_;
  std::uint32_t drift_ = 1u << 16;  // actual / fitted, in 2^-16
};

}  // namespace penstock::scheduler
