// Predicted step times of one group: the fitted terms, corrected by the measured steps
// (docs/scheduling.md, "Step times"). The fit itself is the core's; cost_model_test checks it.
#pragma once

#include <cstdint>
#include <optional>

#include "common/plan/group.h"
#include "common/time.h"
#include "scheduler/cost/cost_terms.h"

namespace penstock::sim {

// What a step computes.
struct StepWork {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t prompt_pairs2 = 0;  // twice the query-key pairs
  std::uint64_t decode_rows = 0;
  std::uint64_t positions_read = 0;  // by decode rows

  StepWork WithChunk(std::uint64_t cached, std::uint64_t count) const;
};

class StepTimes {
 public:
  explicit StepTimes(const Calibration& calibration) : terms_(scheduler::FitCost(calibration)) {}

  bool known() const { return terms_.has_value(); }
  Duration Predict(const StepWork& work) const;
  void Observe(Duration predicted, Duration taken);
  // The cost of a launch of decode attention, in cells.
  std::uint64_t LaunchCells() const;

 private:
  std::optional<scheduler::CostTerms> terms_;
  std::uint64_t drift_ = 65536;  // taken / fitted, in 2^-16
};

}  // namespace penstock::sim
