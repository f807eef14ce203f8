// How long a step takes on one group, predicted from the group's warm-up table and corrected by the
// steps that it has run. StepComposer uses it to keep a step below a target time, and the batch
// splitter to know what a launch costs.
//
// Integer arithmetic in nanoseconds, so every compiler predicts the same. cost_terms.h has the fit.
// Not synchronised.
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
  // Fits the model. It is not ready if the table has no step times.
  explicit CostModel(const Calibration& calibration) : terms_(FitCost(calibration)) {}

  bool ready() const { return terms_.has_value(); }

  // 0 while not ready. A step that does more is never predicted to take less.
  Duration Predict(const StepShape& step) const;

  // A step took `actual`. Corrects all later predictions by a common factor, which follows changes
  // of the machine (throttling, other load) within about thirty steps. One outlier moves the factor
  // by at most 3 %.
  void Observe(Duration predicted, Duration actual);

  // The largest chunk, at most `most` prompt tokens after `cached` positions, with which `step`
  // takes no longer than `target`. The model must be ready.
  std::uint32_t LargestChunk(const StepShape& step, std::uint64_t cached, std::uint32_t most,
                             Duration target) const;

  // The cost of one more attention launch, in cells (batch_splitter.h); kDefaultLaunchCells while
  // not ready.
  std::uint64_t LaunchCells() const;

 private:
  std::uint64_t Linear(std::uint64_t tokens) const;

  std::optional<CostTerms> terms_;
  std::uint32_t drift_ = 1u << 16;  // actual / fitted, in 2^-16
};

}  // namespace penstock::scheduler
